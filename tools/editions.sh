#!/bin/sh
# Puts the site together from the zips of all releases: v1.2.3 at site/v1.2, the newest at site/ as well.
set -eu
rm -rf site
mkdir site
gh release list --exclude-drafts --exclude-pre-releases --limit 1000 --json tagName --jq '.[].tagName' | sort -V >site/tags
while read -r tag; do
    latest=${tag%.*}
    gh release download "$tag" --pattern 'inference-math-*.zip' --output site/book.zip
    python3 -m zipfile -e site/book.zip site
    rm -rf "site/$latest" site/book.zip
    mv site/html "site/$latest"
done <site/tags
rm site/tags
cp -R "site/$latest/." site
