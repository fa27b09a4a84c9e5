"""The HTML page around the sections: one file, no script, nothing loaded from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from probes.report.blocks import Section, html_blocks, markdown_blocks, markdown_text

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --ground: #fff; --card: #f6f8fa;
  --note: #9a6700; --link: #0969da; --good: #1a7f37; --bad: #cf222e; --shade: rgba(31, 35, 40, .16); }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa4af; --line: #3d444d; --ground: #0d1117;
  --card: #161b22; --note: #d29922; --link: #4493f8; --good: #3fb950; --bad: #ff7b72;
  --shade: rgba(0, 0, 0, .6); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.55;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main, header, footer { max-width: 70rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .9rem; margin-top: .8rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
p { max-width: 46rem; overflow-wrap: anywhere; }
.sub, footer { color: var(--soft); font-size: .9rem; margin: 0; }
.lead { font-size: 1.06rem; }
li { max-width: 46rem; margin: .45rem 0; overflow-wrap: anywhere; } ul { padding-left: 1.2rem; }
.note { border-left: 3px solid var(--note); padding: .1rem 0 .1rem .8rem; color: var(--soft); }
.scroll { overflow-x: auto; margin: 1rem 0 1.6rem; background:
  linear-gradient(to left, var(--ground) 40%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--shade), transparent) right / .8rem 100% no-repeat scroll; }
.long { min-width: 11rem; } .longer { min-width: 18rem; } td b { white-space: nowrap; }
b.good { color: var(--good); } b.bad { color: var(--bad); } b.open { color: var(--soft); font-weight: 500; }
table { border-collapse: collapse; font-size: .88rem; min-width: 60%; }
caption { text-align: left; color: var(--soft); padding-bottom: .5rem; max-width: 46rem; caption-side: top; }
th, td { padding: .38rem .7rem .38rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; vertical-align: bottom; border-bottom: 1.5px solid var(--soft); }
tbody th { font-weight: 500; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead th.number { white-space: normal; }
small { display: block; color: var(--soft); font-size: .78rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
  gap: 1rem 1.4rem; margin: 1rem 0 1.8rem; }
.single { grid-template-columns: minmax(0, 34rem); }
.figures:not(.single) figure { max-width: 30rem; }
figure { margin: 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); font-size: .85rem; margin-top: .3rem; overflow-wrap: anywhere; }
pre { background: var(--card); padding: .9rem 1rem; overflow-x: auto; font-size: .82rem; border-radius: 6px;
  line-height: 1.4; }
details { margin: .4rem 0 1.4rem; } summary { cursor: pointer; color: var(--soft); }
footer { padding-top: 2rem; padding-bottom: 3rem; }
@media (max-width: 40rem) {
  h1 { font-size: 1.5rem; } main, header, footer { padding: 0 1rem; } header { padding-top: 1.4rem; }
  caption { max-width: calc(100vw - 2rem); position: sticky; left: 0; }
  tbody th, thead th:first-child { position: sticky; left: 0; background: var(--ground);
    min-width: 4.5rem; max-width: 9rem; overflow-wrap: break-word; }
  tbody th.long, tbody th.longer { position: static; max-width: none; }
}
@media print {
  @page { margin: 14mm 12mm; }
  :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --ground: #fff; --card: #f4f4f4; --note: #777;
    --good: #1a7f37; --bad: #b31d28; --link: #000; }
  body { font-size: 9.5pt; } nav { display: none; } main, header, footer { max-width: none; padding: 0; }
  h1 { font-size: 16pt; } h2 { font-size: 12pt; margin-top: 1.4rem; break-after: avoid; }
  p, li, caption { max-width: none; } .lead { font-size: 10pt; } small { font-size: 6.5pt; }
  figcaption, .sub, footer { font-size: 8pt; }
  .scroll { overflow: visible; background: none; }
  table { font-size: 7.5pt; min-width: 0; } th, td { padding: .2rem .4rem .2rem 0; overflow-wrap: anywhere; }
  thead th { overflow-wrap: normal; } .long, .longer { min-width: 0; } tbody tr:first-child { break-before: avoid; }
  thead { display: table-header-group; } tr, figure, caption, .note { break-inside: avoid; }
  caption { break-after: avoid; }
  tbody th, thead th:first-child { position: static; max-width: none; }
  .figures { grid-template-columns: 1fr 1fr; } .single { grid-template-columns: minmax(0, 12cm); }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 7pt; }
  details:not(.aside) > * { display: block; }
  details:not(.aside)::details-content { content-visibility: visible; display: block; height: auto; }
  summary { list-style: none; break-after: avoid; font-weight: 600; color: var(--ink); }
}
"""


def html_page(title: str, under: str, sections: Sequence[Section], command: str = "report") -> str:
    """The whole page, made by a command of synthlang."""
    nav = "".join(f'<a href="#s{i}">{escape(s.title)}</a>' for i, s in enumerate(sections))
    body = "\n".join(
        f'<section id="s{i}"><h2>{escape(section.title)}</h2>\n{html_blocks(section.blocks)}\n</section>'
        for i, section in enumerate(sections)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<header><h1>{escape(title)}</h1><p class="sub">{escape(under)}</p><nav>{nav}</nav></header>\n'
        f"<main>\n{body}\n</main>\n<footer>Made by synthlang {command}.</footer>\n</body>\n</html>\n"
    )


def markdown_page(title: str, under: str, sections: Sequence[Section]) -> str:
    """The same sections as Markdown."""
    parts = [f"# {markdown_text(title)}", markdown_text(under)]
    for section in sections:
        parts += [f"## {markdown_text(section.title)}", markdown_blocks(section.blocks)]
    return "\n\n".join(parts) + "\n"
