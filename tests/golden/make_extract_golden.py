"""Make tests/golden/corpus/extract.jsonl: what trafilatura finds in pages of ours.

    $(scripts/oracle-env | tail -n 1) -m pip install trafilatura==2.3.1 lxml_html_clean==0.4.6
    $(scripts/oracle-env | tail -n 1) tests/golden/make_extract_golden.py

A line is {"name": ..., "html": ..., "trafilatura": ...}; the first has the version. The pages are written for this test: a
shape that pages have, around the same few paragraphs.
"""

import importlib.metadata
import json
from pathlib import Path

import trafilatura

OUT = Path(__file__).parent / "corpus" / "extract.jsonl"

PARAGRAPHS = [
    "The river had risen in the night, and by the time we came down to the landing the ferry was tied up on the far side.",
    "Nobody seemed to mind very much. People sat on their bags, talked about the price of corn, and looked at the water.",
    "At noon a boy rowed over in a small boat, and told us that the rope had been cut. It would be evening, he said, before "
    "there was another one; the smith was at work on the hook.",
    "So we walked up to the village again. The inn had soup and bread, and a room with a window to the river, from which "
    "one could see the whole landing and the boats on both sides of it.",
    "In the evening the ferry came. It took us over in the last light, forty people, two carts and a goat, and nobody had to "
    "pay, since the ferryman was ashamed of his rope.",
]
NAVIGATION = "".join(f'<li><a href="/{word.lower()}">{word}</a></li>' for word in
                     ("Home", "Politics", "Weather", "Sports", "Travel", "Contact"))
TEASERS = "".join(f'<div class="card"><h3><a href="/{i}">{title}</a></h3><p>{words}</p></div>' for i, (title, words) in
                  enumerate([("Bridge is to be built after all", "The council has voted for it, with one voice against."),
                             ("Corn is dearer than last year", "Rain in May is the reason, say those who sell it."),
                             ("The smith wins the rowing", "For the third time in a row, and by two lengths.")]))


def paragraphs(tag="p"):
    return "".join(f"<{tag}>{one}</{tag}>\n" for one in PARAGRAPHS)


PAGES = {
    "article": f"<header><ul>{NAVIGATION}</ul></header><main><article><h1>The ferry</h1>{paragraphs()}</article></main>"
               "<footer><p>Copyright 2026 by the paper. All rights are reserved.</p></footer>",
    "divs": f'<div id="top"><ul>{NAVIGATION}</ul></div><div class="wrap"><div class="text">{paragraphs()}</div>'
            f'<div class="right">{TEASERS}</div></div>',
    "breaks": f"<table><tr><td><ul>{NAVIGATION}</ul></td><td>{'<br><br>'.join(PARAGRAPHS)}</td></tr></table>",
    "comments": f"<article>{paragraphs()}</article><div id='comments'><h3>Comments</h3>"
                "<p>I was there too, and the soup was much better than you say it was!</p>"
                "<p>There is no goat on the picture. Did you really see one that evening?</p></div>",
    "headings": "<article>" + "".join(f"<h2>Part {i} of the journey</h2><p>{one}</p>" for i, one in
                                      enumerate(PARAGRAPHS)) + "</article>",
    "list": f"<nav><ul>{NAVIGATION}</ul></nav><article><p>{PARAGRAPHS[0]}</p><p>{PARAGRAPHS[2]}</p><ul>"
            "<li>forty people, most of them on their way to the market</li><li>two carts with wheels as high as a man</li>"
            f"<li>a goat that belonged to nobody</li></ul><p>{PARAGRAPHS[4]}</p></article>",
    "links": f"<article><p>{PARAGRAPHS[0].replace('the ferry', '<a href=/ferry>the ferry</a>')}</p><p>{PARAGRAPHS[1]}</p>"
             f"<p>{PARAGRAPHS[3].replace('The inn', '<a href=/inn>The inn</a>')}</p><p>{PARAGRAPHS[4]}</p></article>"
             f"<aside><h2>More news</h2>{TEASERS}</aside>",
    "hidden": f"<script>var a = '<p>{PARAGRAPHS[3]}</p>';</script><style>p {{ color: red; }}</style><article>{paragraphs()}"
              f"</article><noscript><p>Turn on scripts, please, and then load this page again.</p></noscript>",
}


def main():
    with OUT.open("w") as file:
        file.write(json.dumps({"trafilatura": importlib.metadata.version("trafilatura")}) + "\n")
        for name, body in PAGES.items():
            html = f"<!doctype html><html><head><title>The ferry</title></head><body>{body}</body></html>"
            found = trafilatura.extract(html, include_comments=False) or ""
            file.write(json.dumps({"name": name, "html": html, "trafilatura": found}) + "\n")


if __name__ == "__main__":
    main()
