/* The style sheet of HTML reports: two color schemes, wide and narrow screens. Text has a contrast of at
 * least 4.5 on its background, in both schemes. */
#include "html_parts.h"

const char *const ses_html_style[] = {
    /* colors */
    ":root{color-scheme:light dark;--bg:#f4f6f8;--card:#fff;--fg:#1a1f26;--dim:#57606a;--rule:#d9dee4;"
    "--hit:11,99,206;--miss:190,18,60;--good:#116329;--bad:#a40e26;--code:#eef1f4;"
    "--c0:#0b63ce;--c1:#c2410c;--c2:#15803d;--c3:#8b2fd6;--c4:#946200;--c5:#0e7490;--c6:#be123c;--c7:#57606a}"
    "@media(prefers-color-scheme:dark){:root{--bg:#11151a;--card:#1a2027;--fg:#e6e9ed;--dim:#a3adb8;"
    "--rule:#333c46;--hit:108,176,255;--miss:255,139,154;--good:#6fdd8b;--bad:#ff9aa5;--code:#252d36;"
    "--c0:#6cb0ff;--c1:#ff9e64;--c2:#5fd38a;--c3:#c9a2ff;--c4:#e8c15a;--c5:#56d0dd;--c6:#ff8b9a;"
    "--c7:#a3adb8}}",
    /* page */
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1160px;padding:2.2rem 1.25rem 3rem;"
    "background:var(--bg);color:var(--fg);font:15px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif;"
    "-webkit-text-size-adjust:100%}"
    "h1,h2,h3,p,figure,dl,dd,ol{margin:0}h1{font-size:1.75rem;line-height:1.2;letter-spacing:-.015em;"
    "overflow-wrap:anywhere}h2{font-size:1.3rem;line-height:1.25;overflow-wrap:anywhere}"
    "h3{font-size:1rem;margin-bottom:.6rem}.kicker{color:var(--dim);font-size:.8rem;font-weight:600;"
    "letter-spacing:.06em;text-transform:uppercase;margin-bottom:.3rem}.sub{color:var(--dim);margin-top:."
    "4rem;"
    "overflow-wrap:anywhere}"
    "section{margin-top:2.75rem;padding-top:2rem;border-top:1px solid var(--rule)}"
    ".card,figure{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:1rem 1.1rem;"
    "min-width:0}.block{margin-top:1.1rem}",
    /* figures of a run */
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(8.6rem,45%),1fr));gap:.75rem;"
    "margin-top:1.4rem}.tiles div{background:var(--card);border:1px solid var(--rule);border-radius:10px;"
    "padding:.7rem .9rem;min-width:0}.tiles dt{color:var(--dim);font-size:.8rem}.tiles dd{font-size:1.3rem;"
    "font-weight:600;font-variant-numeric:tabular-nums;line-height:1.35}.tiles .more{color:var(--dim);"
    "font-size:.8rem;font-weight:400}.tiles .main dd:not(.more){color:var(--c0)}",
    /* tables */
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.32rem .9rem .32rem 0;"
    "text-align:left;vertical-align:top;overflow-wrap:break-word}td:last-child,th:last-child{padding-right:0}"
    "td.n,th.n{text-align:right;overflow-wrap:normal;white-space:nowrap}thead th{color:var(--dim);"
    "font-size:.8rem;font-weight:600;border-bottom:1px solid var(--rule);vertical-align:bottom}"
    "tbody tr+tr>*{border-top:1px solid var(--rule)}tbody th{font-weight:500}.full{width:100%}"
    ".wide{overflow-x:auto}.best "
    "td:first-child{font-weight:600}.mark{color:var(--good);font-size:.8rem;font-weight:600;"
    "margin-left:.4em}"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20.5rem,100%),1fr));gap:1.1rem;"
    "align-items:start;margin-top:1.1rem}.pair td,.pair th{padding-right:.4rem}"
    ".pair td:first-child,.pair tbody th{overflow-wrap:anywhere}.pair td.n{font-size:.94rem}"
    ".pair td:last-child,.pair th:last-child{padding-right:0}.pair .matrix{width:100%}"
    ".pair td{vertical-align:baseline}.pair "
    "td.dim{white-space:nowrap;font-size:.82rem;text-align:right}.cards td,.cards "
    "th{padding-right:.6rem}",
    /* confusion matrix */
    ".matrix{border-spacing:3px;border-collapse:separate}.matrix caption{caption-side:bottom;text-align:left;"
    "color:var(--dim);font-size:.85rem;padding-top:.5rem}.matrix td{min-width:2.5rem;padding:.45rem .3rem;"
    "text-align:center;border:0!important;border-radius:5px}.matrix th{padding:.3rem "
    ".5rem;border:0!important;"
    "font-size:.85rem;font-weight:500;text-align:right;vertical-align:middle;overflow-wrap:normal}"
    ".matrix thead th{text-align:center;vertical-align:bottom}.matrix small{display:block;font-size:.75rem;"
    "line-height:1.2}.tall thead th span{writing-mode:vertical-rl}",
    /* charts */
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(19rem,100%),1fr));gap:1rem;"
    "margin-top:1.1rem}figcaption{display:flex;justify-content:space-between;align-items:baseline;gap:1rem;"
    "margin-bottom:.35rem}.title{font-weight:600}.last{color:var(--dim);font-size:.8rem}"
    "svg{display:block;width:100%;height:auto}svg text{font:11.5px system-ui,-apple-system,'Segoe UI',"
    "sans-serif;fill:var(--dim)}.y{text-anchor:end}.x{text-anchor:middle}.grid{stroke:var(--rule)}"
    ".axis{stroke:var(--dim)}.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    ".raw{fill:none;stroke-width:1;stroke-opacity:.3;stroke-linejoin:round}.note{color:var(--dim);"
    "font-size:.78rem;margin-top:.45rem}"
    ".set td{overflow-wrap:anywhere}.pair>:only-child{max-width:34rem}"
    ".legend{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin-top:1.1rem;padding:0;list-style:none}"
    ".legend li{overflow-wrap:anywhere}.key{display:inline-block;width:.75em;height:.75em;border-radius:3px;"
    "margin-right:.45em}",
    /* errors and commands */
    ".errors,.next{list-style:none;padding:0}.errors li+li,.next li+li{margin-top:.9rem;padding-top:.9rem;"
    "border-top:1px solid var(--rule)}.errors p{overflow-wrap:anywhere;white-space:pre-wrap}.errors "
    ".labels{display:flex;flex-wrap:wrap;gap:.15rem 1rem;font-size:.85rem;margin-top:.25rem;color:var(--dim)}"
    ".words{margin-top:.4rem;font-size:.85rem}"
    ".words th,.words td{padding:.12rem 1.2rem .12rem 0;border:0!important}.labels "
    "b{font-weight:600;overflow-wrap:anywhere}.good{color:var(--good)}.bad{color:var(--bad)}"
    ".next p{color:var(--dim);font-size:.9rem;margin-bottom:.25rem}code{font:13px/1.5 "
    "ui-monospace,SFMono-Regular,"
    "Menlo,Consolas,monospace;overflow-wrap:anywhere}.next code,.command "
    "code{display:block;background:var(--code);"
    "border-radius:6px;padding:.5rem .7rem;white-space:pre-wrap}.dim{color:var(--dim)}"
    "details{margin-top:.8rem}summary{cursor:pointer;color:var(--c0)}details table{margin-top:.6rem}"
    "footer{color:var(--dim);font-size:.85rem;margin-top:2.5rem}",
    /* narrow screens, paper */
    "@media(max-width:640px){body{padding:1.4rem .8rem 2rem}h1{font-size:1.45rem}section{margin-top:2rem;"
    "padding-top:1.5rem}.card,figure{padding:.85rem .8rem}td,th{padding-right:.7rem}"
    ".matrix{width:100%;border-spacing:2px}.matrix td{min-width:0;padding:.35rem .1rem;font-size:.85rem}"
    ".matrix small{font-size:.68rem}.matrix th{padding:.2rem;font-size:.75rem}"
    ".cards thead{display:none}.cards,.cards tbody,.cards tr,.cards td{display:block;width:100%}"
    ".cards tr+tr>*{border-top:0!important}.cards tr{padding:.8rem 0}.cards tr+tr{border-top:1px solid "
    "var(--rule)}.cards tr:first-child{padding-top:0}.cards "
    "td{display:flex;justify-content:space-between;gap:1rem;"
    "padding:.12rem 0;text-align:right}.cards td::before{content:attr(data-label);color:var(--dim);"
    "font-weight:400;white-space:nowrap}.cards td:first-child{font-weight:600;text-align:left;"
    "justify-content:flex-start}.cards td:first-child::before{content:none}}"
    "@media(max-width:385px){.card table{font-size:.82rem}.card thead th{font-size:.7rem}"
    ".pair td,.pair th{padding-right:.3rem}.pair td.dim{font-size:.72rem}"
    ".card .matrix td{font-size:.75rem;padding:.3rem 0}.matrix small{font-size:.62rem;white-space:nowrap}"
    ".card .matrix th{font-size:.66rem;padding:.15rem .1rem}}"
    "@media print{body{max-width:none}.card,figure,.tiles div{break-inside:avoid}}",
    NULL
};
