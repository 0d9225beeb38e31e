"""The built book, as files: links that lead somewhere, nothing loaded from elsewhere, page metadata."""

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import words
import yaml
from bs4 import BeautifulSoup
from cards import SIZE

from inference_math import __version__, evidence

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
pytestmark = pytest.mark.skipif(not SITE.exists(), reason="no built book: run 'make book'")
REDIRECTS = tomllib.loads((ROOT / "book" / "redirects.toml").read_text(encoding="utf-8"))
MOVED = [(SITE / "book" / f"{old}.html", SITE / "book" / f"{new}.html") for old, new in REDIRECTS.items()]


@pytest.fixture(scope="module")
def pages() -> dict[Path, BeautifulSoup]:
    found = sorted(set((SITE / "book").rglob("*.html")) - {old for old, _ in MOVED})
    return {p: BeautifulSoup(p.read_text(encoding="utf-8"), "html.parser") for p in found}


def test_old_addresses_lead_to_where_their_page_is_now_and_keep_the_place_in_it():
    assert MOVED
    for old, new in MOVED:
        text = old.read_text(encoding="utf-8")
        (target,) = re.findall(r'location\.replace\("([^"]+)" \+ location\.hash\)', text)
        assert (old.parent / target).resolve() == new.resolve()
        assert new.exists()


def test_every_page_of_the_contents_is_built(pages):
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?:file|root): (\S+)", toc))
    assert {p.relative_to(SITE).with_suffix("").as_posix() for p in pages} == listed


def test_internal_links_and_anchors_exist(pages):
    anchors = {p: {t["id"] for t in soup.find_all(id=True)} for p, soup in pages.items()}
    broken = []
    for page, soup in pages.items():
        for tag, attribute in (("a", "href"), ("img", "src"), ("script", "src"), ("link", "href")):
            for element in soup.find_all(tag, **{attribute: True}):
                url = urlsplit(element[attribute])
                if url.scheme or url.netloc:
                    continue
                target = (page.parent / unquote(url.path)).resolve() if url.path else page
                name, named, _ = unquote(url.fragment).partition(":")  # a figure's or the planner's settings
                if named and name == "plan":
                    name = "planner-form"
                if not target.exists() or (name and target in anchors and name not in anchors[target]):
                    broken.append(f"{page.relative_to(SITE)}: {element[attribute]}")
    assert not broken


def test_nothing_is_loaded_from_another_host(pages):
    loading = (("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"))
    for page, soup in pages.items():
        for tag, attribute in loading:
            for element in soup.find_all(tag, **{attribute: True}):
                if tag == "link" and not {"stylesheet", "preload", "icon", "modulepreload"} & set(element["rel"]):
                    continue
                assert not urlsplit(element[attribute]).netloc, f"{page}: {element[attribute]}"
    for sheet in SITE.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?https?:|@import\s+['\"]?https?:", sheet.read_text(encoding="utf-8"))


def test_launch_buttons_open_the_twin(pages):
    launched = 0
    for page, soup in pages.items():
        for link in soup.find_all("a", href=re.compile("mybinder|colab")):
            twin = re.search(r"notebooks/[\w./-]+\.ipynb$", link["href"])
            assert twin, f"{page}: {link['href']}"
            assert (ROOT / twin[0]).exists()
            launched += 1
    assert launched >= 8


def test_live_figures_are_valid_vega_lite_and_small(pages):
    import altair as alt

    count = 0
    for page, soup in pages.items():
        for figure in soup.find_all(class_="live-figure"):
            spec = json.loads(figure.script.string)
            assert spec.pop("description")
            alt.Chart.from_dict(spec)  # validates against the schema
            count += 1
        assert page.stat().st_size < 600_000, page
    assert count >= 6


def test_the_handbook_s_figures_are_drawings_in_the_page_s_ink(pages):
    handbook = [soup for page, soup in pages.items() if page.parent.name == "handbook"]
    assert [image["src"] for soup in handbook for image in soup.select("article img:not(.live-still)")] == []
    assert sum(len(soup.select("figure .drawn > svg")) for soup in handbook) > 40


def test_every_page_names_its_edition_links_to_its_text_and_says_what_it_is_when_shared(pages):
    sitemap = (SITE / "sitemap.xml").read_text(encoding="utf-8")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    url, home = settings["repository"]["url"], settings["html"]["baseurl"]
    for page, soup in pages.items():
        assert f"{__version__}, data {evidence.digest()}." in soup.find(class_="edition").get_text(), page
        text = page.relative_to(SITE).with_suffix(".md").as_posix()
        assert soup.find("a", href=f"{url}/edit/main/{text}"), page
        address = home + page.relative_to(SITE).as_posix()
        assert f"<loc>{address}</loc>" in sitemap
        assert soup.find("link", rel="canonical")["href"] == address
        assert soup.find("meta", property="og:url")["content"] == address
        card = "card-planner.png" if page.stem == "planner" else "card.png"
        assert soup.find("meta", property="og:image")["content"] == f"{home}_static/{card}"
        assert (SITE / "_static" / card).exists()
        assert soup.find("meta", attrs={"name": "twitter:card"})["content"] == "summary_large_image"
        size = tuple(int(soup.find("meta", property=f"og:image:{side}")["content"]) for side in ("width", "height"))
        assert size == SIZE
        assert soup.find("meta", property="og:title")["content"] != settings["title"]
        assert len(soup.find("meta", attrs={"name": "description"})["content"]) > 40, page
        assert soup.title.get_text(strip=True)


LOOKED_UP = ("handbook/*.html", "questions.html", "planner*.html")  # the handbook, whose pages are looked up
UNSEEN = "details, .dropdown, .toggle, script, style, math, svg, nav, footer, .prev-next-area, .headerlink, .hidden"


def test_the_handbook_is_short():
    """Of the words that are seen before anything is opened; questions are many short pages in one."""
    seen = {}
    for path in (path for pattern in LOOKED_UP for path in sorted((SITE / "book").glob(pattern))):
        article = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").find(class_="bd-article")
        for part in article.select(UNSEEN):
            part.decompose()
        seen[path.stem] = len(article.get_text(" ").split())
    assert len(seen) >= 20
    assert max(n for name, n in seen.items() if name != "questions") <= 1500, seen
    seen |= {twin.stem: words.seen(twin, code=False) for twin in ROOT.glob("notebooks/appendix/*.ipynb")}
    assert sum(seen.values()) <= words.HANDBOOK, seen


def test_the_door_has_a_title_and_a_lost_reader_finds_back():
    base = urlsplit(yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["html"]["baseurl"]).path
    door, lost = ((SITE / name).read_text("utf-8") for name in ("index.html", "404.html"))
    assert "<title>Inference Math: a research companion on LLM serving</title>" in door
    assert 'url=book/index.html"' in door
    links = re.findall(r'href="([^"]+)"', lost)
    assert links
    for link in links:
        assert link.startswith(base)
        assert (SITE / link.removeprefix(base)).exists()
    assert "sitemap.xml" in (SITE / "robots.txt").read_text("utf-8")
