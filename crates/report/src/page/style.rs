//! The CSS of pages: light and dark, on a screen, on a phone and on paper.

/// The CSS of a report.
pub(super) const PAGE: &str = concat!(
    ":root{--paper:#fff;--ink:#1a1d21;--soft:#5a626b;--grid:#d9dde2;--note:#9a4b00;--back:#f3f5f7}",
    "@media(prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e4e7ea;--soft:#a3abb4;--grid:#3a4047;",
    "--note:#e9a15a;--back:#20252b}}",
    "body{font:16px/1.5 system-ui,sans-serif;max-width:58rem;margin:1.5rem auto;padding:0 1rem;",
    "color:var(--ink);background:var(--paper);overflow-wrap:anywhere}",
    "h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .4rem}",
    "a{color:inherit}.small,.source,figcaption{color:var(--soft);font-size:.875rem;margin:.2rem 0}",
    "figure{margin:1.6rem 0}.says{font-size:1.05rem;margin:.2rem 0 .5rem}",
    "svg{display:block;width:100%;height:auto}",
    "rect.p{fill:var(--paper)}text.i{fill:var(--ink)}text.n{fill:var(--note)}",
    "path.i{stroke:var(--ink)}path.g{stroke:var(--grid)}",
    ".narrow{display:none}",
    "@media(max-width:640px){.wide{display:none}.narrow{display:block}}",
    ".scroll{overflow-x:auto;max-width:100%}",
    "table{border-collapse:collapse;font-size:.8125rem;margin:.4rem 0}",
    "td,th{border-bottom:1px solid var(--grid);padding:.25em .7em;text-align:left;white-space:nowrap}",
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}",
    "pre{background:var(--back);padding:.7em;white-space:pre-wrap}code{background:var(--back)}",
    "details,.careful{background:var(--back);border-left:4px solid var(--note);padding:.3rem .7rem;margin:.35rem 0}",
    "summary{cursor:pointer}details ul{margin:.3rem 0;padding-left:1.2rem;font-size:.875rem}",
    "@media print{body{max-width:none;margin:0}.narrow{display:none}.wide{display:block}",
    "figure{break-inside:avoid}}",
);

/// The additional CSS of a data sheet: two columns of blocks on a screen, three columns on a page
/// of A4.
pub(super) const SHEET: &str = concat!(
    ".sheet{display:grid;grid-template-columns:1fr 1fr;gap:.8rem 1.6rem;align-items:start}",
    ".sheet h2{margin:.2rem 0}.sheet p{margin:.15rem 0;font-size:.875rem}.sheet section{min-width:0}",
    "body.paper{max-width:66rem}",
    "@media(max-width:640px){.sheet{grid-template-columns:1fr}}",
    "@page{size:A4 landscape;margin:8mm}",
    "@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--grid:#ccc;--note:#9a4b00;--back:#fff}",
    "body{line-height:1.25;padding:0}h1{font-size:14pt;margin:0}.sheet h2{font-size:10pt;margin:0}",
    ".sheet p{font-size:8pt;margin:0}p.small{font-size:7pt;margin:0}.screen{display:none}",
    ".sheet{grid-template-columns:1fr 1fr 1fr;gap:1mm 6mm}.sheet svg{max-height:66mm}",
    ".sheet section{break-inside:avoid}table{font-size:7pt;margin:0}td,th{padding:0 .5em}}",
);
