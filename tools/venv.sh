#!/bin/sh
# Creates .venv, or the folder that is named, unless it is there, with the first supported Python that is here, or says in one line what is missing.
set -eu
supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
folder=${1:-.venv}
if "$folder/bin/python" -c "$supported" 2>/dev/null; then
    exit 0
fi
for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
    if command -v "$candidate" >/dev/null 2>&1 &&
        "$candidate" -c "$supported" 2>/dev/null; then
        "$candidate" -c 'import venv, ensurepip' 2>/dev/null || {
            echo "$candidate has no venv module: install it (Debian: apt install python3-venv)." >&2
            exit 1
        }
        "$candidate" -m venv --clear "$folder"
        exit 0
    fi
done
found=$(python3 --version 2>/dev/null || echo "no python3")
echo "Python 3.11, 3.12 or 3.13 is needed and $found was found: install one or name it, make PYTHON=/path/to/python." >&2
exit 1
