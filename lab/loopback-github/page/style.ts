/** The style sheet of the pages: GitHub's measures and colours, light and dark, beside GitHub's own sheet for Markdown. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

let sheet: string | null = null;

/** Everything the pages need, in one text. */
export function styleSheet(): string {
  sheet ??= `${readFileSync(createRequire(import.meta.url).resolve('github-markdown-css/github-markdown.css'), 'utf8')}\n${OWN}`;
  return sheet;
}

const OWN = `
:root {
  color-scheme: light dark;
  --fg: #1f2328; --fg-muted: #59636e; --fg-on-emphasis: #fff; --link: #0969da;
  --bg: #fff; --bg-muted: #f6f8fa; --bg-inset: #f6f8fa; --border: #d1d9e0; --border-muted: #d1d9e0b3;
  --success: #1a7f37; --success-bg: #1f883d; --success-muted: #dafbe1; --danger: #d1242f; --danger-bg: #cf222e; --danger-muted: #ffebe9;
  --attention: #9a6700; --attention-muted: #fff8c5; --accent-muted: #ddf4ff; --accent-border: #54aeff66; --done: #8250df;
  --neutral-muted: #818b981f; --btn: #f6f8fa; --header: #f6f8fa;
  --add: #dafbe1; --add-num: #aceebb; --add-word: #aceebb; --del: #ffebe9; --del-num: #ffcecb; --del-word: #ffcecb; --hunk: #ddf4ff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --fg: #f0f6fc; --fg-muted: #9198a1; --link: #4493f8;
    --bg: #0d1117; --bg-muted: #151b23; --bg-inset: #010409; --border: #3d444d; --border-muted: #3d444db3;
    --success: #3fb950; --success-bg: #238636; --success-muted: #2ea04326; --danger: #f85149; --danger-bg: #da3633; --danger-muted: #f851491a;
    --attention: #d29922; --attention-muted: #bb800926; --accent-muted: #388bfd1a; --accent-border: #388bfd66; --done: #ab7df8;
    --neutral-muted: #656c7633; --btn: #212830; --header: #010409;
    --add: #2ea04326; --add-num: #3fb9504d; --add-word: #2ea04366; --del: #f851491a; --del-num: #f851494d; --del-word: #f8514966; --hunk: #388bfd1a;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 24px; }
body { margin: 0; background: var(--bg); color: var(--fg); font: 14px/1.5 -apple-system, BlinkMacSystemFont, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif, "Noto Color Emoji"; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
.icon { flex: none; vertical-align: text-bottom; }
.mono, code, pre { font-family: ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
.muted { color: var(--fg-muted); }
.strong { font-weight: 600; color: var(--fg); }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }

.top { background: var(--header); border-bottom: 1px solid var(--border); }
.top-row { display: flex; align-items: center; gap: 12px; padding: 14px 24px 10px; }
.top-mark { display: grid; place-items: center; width: 32px; height: 32px; border-radius: 50%; background: var(--fg); color: var(--bg); }
.crumbs { display: flex; gap: 6px; font-size: 14px; min-width: 0; overflow-wrap: anywhere; }
.crumbs a { color: var(--fg); }
.crumbs .slash { color: var(--fg-muted); }
.local { margin-left: auto; flex: none; border: 1px solid var(--border); border-radius: 2em; padding: 0 10px; font-size: 12px; color: var(--fg-muted); }
.repo-nav { display: flex; gap: 8px; padding: 0 16px; overflow-x: auto; }
.repo-nav a { display: flex; align-items: center; gap: 8px; padding: 6px 8px 12px; color: var(--fg); border-bottom: 2px solid transparent; white-space: nowrap; }
.repo-nav a:hover { text-decoration: none; }
.repo-nav .icon { color: var(--fg-muted); }
.repo-nav a[aria-current] { font-weight: 600; border-bottom-color: #fd8c73; }
.count { display: inline-block; min-width: 20px; padding: 0 6px; border-radius: 2em; background: var(--neutral-muted); color: var(--fg); font-size: 12px; font-weight: 500; line-height: 18px; text-align: center; }

.page { max-width: 1280px; margin: 0 auto; padding: 24px 32px 48px; }
.pr-title { margin: 0 0 8px; font-size: 32px; font-weight: 400; line-height: 1.25; overflow-wrap: anywhere; }
.pr-title .number { color: var(--fg-muted); font-weight: 300; }
.pr-meta { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; padding-bottom: 16px; color: var(--fg-muted); }
.state { display: inline-flex; align-items: center; gap: 4px; padding: 5px 12px; border-radius: 2em; color: var(--fg-on-emphasis); font-weight: 500; line-height: 20px; }
.state.open { background: var(--success-bg); } .state.merged { background: #8250df; } .state.closed { background: var(--danger-bg); } .state.draft { background: #59636e; }
.branch { padding: 2px 6px; border-radius: 6px; background: var(--accent-muted); color: var(--link); font-size: 12px; overflow-wrap: anywhere; }
.tabs { display: flex; gap: 0; margin-bottom: 16px; border-bottom: 1px solid var(--border); overflow-x: auto; }
.tabs a { display: flex; align-items: center; gap: 8px; padding: 8px 16px; color: var(--fg); border: 1px solid transparent; border-bottom: 0; border-radius: 6px 6px 0 0; white-space: nowrap; }
.tabs a:hover { text-decoration: none; }
.tabs .icon { color: var(--fg-muted); }
.tabs .diffstat { margin-left: auto; align-self: center; }

#commits, #checks, #files { display: none; }
#commits:target, #checks:target, #files:target, #commits:has(:target), #checks:has(:target), #files:has(:target) { display: block; }
body:has(:is(#commits, #checks, #files):target) #conversation, body:has(:is(#commits, #checks, #files) :target) #conversation { display: none; }
.tabs a.t-conversation { border-color: var(--border); background: var(--bg); margin-bottom: -1px; }
body:has(:is(#commits, #checks, #files):target, :is(#commits, #checks, #files) :target) .tabs a.t-conversation { border-color: transparent; margin-bottom: 0; }
body:has(#commits:target, #commits :target) .tabs a.t-commits, body:has(#checks:target, #checks :target) .tabs a.t-checks, body:has(#files:target, #files :target) .tabs a.t-files { border-color: var(--border); background: var(--bg); margin-bottom: -1px; }

.columns { display: grid; grid-template-columns: minmax(0, 1fr) 256px; gap: 24px; }
.timeline { position: relative; padding-left: 56px; }
.timeline::before { content: ""; position: absolute; top: 8px; bottom: 0; left: 72px; width: 2px; background: var(--border-muted); }
.item { position: relative; margin-bottom: 16px; }
.item > .avatar { position: absolute; left: -56px; top: 0; }
.event { position: relative; display: flex; flex-wrap: wrap; align-items: center; gap: 6px; padding: 8px 0 8px 0; color: var(--fg-muted); background: none; }
.event .badge { position: relative; display: grid; place-items: center; width: 32px; height: 32px; border-radius: 50%; border: 2px solid var(--bg); background: var(--bg-muted); color: var(--fg-muted); box-shadow: inset 0 0 0 1px var(--border-muted); }
.event .badge { background: color-mix(in srgb, var(--bg) 60%, var(--bg-muted)); }
.event.commit-line { padding: 2px 0 2px 4px; font-size: 13px; }
.event.commit-line .badge { width: 24px; height: 24px; background: var(--bg); box-shadow: none; }
.event .sha { margin-left: auto; color: var(--fg-muted); font-size: 12px; }
.avatar { display: inline-grid; place-items: center; width: 40px; height: 40px; border-radius: 50%; color: #fff; font-size: 14px; font-weight: 600; letter-spacing: .02em; flex: none; }
.avatar.bot { border-radius: 8px; } .avatar.small { width: 20px; height: 20px; font-size: 9px; } .avatar.small.bot { border-radius: 4px; }
.av0 { background: #0550ae; } .av1 { background: #116329; } .av2 { background: #953800; } .av3 { background: #8250df; } .av4 { background: #a40e26; } .av5 { background: #4d2d00; } .av6 { background: #1b7c83; } .av7 { background: #6e40c9; }
.box { border: 1px solid var(--border); border-radius: 6px; background: var(--bg); }
.comment { position: relative; }
.comment::before, .comment::after { content: ""; position: absolute; top: 11px; left: -8px; width: 8px; height: 16px; clip-path: polygon(0 50%, 100% 0, 100% 100%); background: var(--border); }
.comment::after { left: -7px; background: var(--bg-muted); }
.comment-head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; padding: 7px 16px; border-bottom: 1px solid var(--border); border-radius: 6px 6px 0 0; background: var(--bg-muted); color: var(--fg-muted); }
.comment-head a.when { color: var(--fg-muted); }
.label { padding: 0 7px; border: 1px solid var(--border); border-radius: 2em; font-size: 12px; font-weight: 500; line-height: 18px; color: var(--fg-muted); }
.label.outdated { color: var(--attention); border-color: var(--attention); }
.comment-head .right { margin-left: auto; }
.comment-body { padding: 16px; }
.comment:target, .thread:target { border-color: var(--link); box-shadow: 0 0 0 1px var(--link); }
.markdown-body { font-family: inherit; font-size: 14px; background: none; overflow-wrap: break-word; }
.markdown-body table { display: block; width: max-content; max-width: 100%; overflow: auto; }
.markdown-body .md-add { color: var(--color-prettylights-syntax-markup-inserted-text, var(--success)); background: var(--add); }
.markdown-body .md-del { color: var(--color-prettylights-syntax-markup-deleted-text, var(--danger)); background: var(--del); }
.markdown-body .md-hunk { color: var(--done); }
.markdown-body .md-mention { color: var(--fg); font-weight: 600; }
.md-emoji { position: relative; } .md-emoji svg { width: 1.1em; height: 1.1em; vertical-align: -.15em; }
.markdown-body .md-image { display: inline-block; padding: 2px 8px; border: 1px dashed var(--border); border-radius: 6px; color: var(--fg-muted); }
.empty { color: var(--fg-muted); font-style: italic; }
.reactions { display: flex; gap: 6px; padding: 0 16px 16px; }
.reaction svg { display: block; }
.reaction { display: inline-flex; align-items: center; gap: 6px; height: 26px; padding: 0 9px; border: 1px solid var(--border); border-radius: 2em; font-size: 12px; }

.thread { margin: 8px 0 0; overflow: hidden; }
.thread-file { display: flex; align-items: center; gap: 8px; padding: 8px 16px; border-bottom: 1px solid var(--border); background: var(--bg-muted); font-size: 12px; }
.thread-file a { color: var(--fg); overflow-wrap: anywhere; }
.thread-lines { padding: 8px 16px; color: var(--fg-muted); font-size: 12px; }
.thread-comment { display: flex; gap: 12px; padding: 16px; border-top: 1px solid var(--border); }
.thread-comment > div { flex: 1; min-width: 0; }
.thread-comment .who { margin-bottom: 4px; color: var(--fg-muted); }
.suggestion { margin: 8px 0 16px; border: 1px solid var(--border); border-radius: 6px; overflow: hidden; }
.suggestion-head { display: flex; align-items: center; padding: 6px 12px; border-bottom: 1px solid var(--border); font-size: 12px; color: var(--fg-muted); background: var(--bg-muted); }
.suggestion-foot { display: flex; justify-content: flex-end; padding: 8px; border-top: 1px solid var(--border); }
.btn { display: inline-flex; align-items: center; gap: 6px; padding: 3px 12px; border: 1px solid var(--border); border-radius: 6px; background: var(--btn); color: var(--fg); font: inherit; font-size: 12px; font-weight: 500; line-height: 20px; }
.btn.primary { border-color: transparent; background: var(--success-bg); color: #fff; font-size: 14px; padding: 5px 16px; }
.btn[disabled] { cursor: default; }

.diff { width: 100%; border-collapse: collapse; font: 12px/20px ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; tab-size: 8; }
.diff td { padding: 0; vertical-align: top; }
.diff .num { width: 1%; min-width: 44px; padding: 0 10px; text-align: right; color: var(--fg-muted); user-select: none; white-space: nowrap; }
.diff .code { padding: 0 10px 0 22px; position: relative; white-space: pre-wrap; overflow-wrap: anywhere; }
.diff .code::before { content: attr(data-mark); position: absolute; left: 8px; user-select: none; }
.diff .add .code { background: var(--add); } .diff .add .num { background: var(--add-num); color: var(--fg); }
.diff .del .code { background: var(--del); } .diff .del .num { background: var(--del-num); color: var(--fg); }
.diff .add mark { background: var(--add-word); } .diff .del mark { background: var(--del-word); } .diff mark { color: inherit; border-radius: 3px; }
.diff .hunk td { background: var(--hunk); color: var(--fg-muted); } .diff .hunk .code { padding-block: 4px; }
.diff .inline td { border-block: 1px solid var(--border); padding: 12px 16px; background: var(--bg-inset); font: 14px/1.5 -apple-system, BlinkMacSystemFont, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
.diff tr:target .code { background: var(--attention-muted); }

.merge { position: relative; }
.merge > .merge-icon { position: absolute; left: -56px; top: 0; display: grid; place-items: center; width: 40px; height: 40px; border-radius: 6px; color: #fff; background: var(--success-bg); }
.merge > .merge-icon.bad { background: var(--danger-bg); } .merge > .merge-icon.wait { background: #9a6700; } .merge > .merge-icon.done { background: #8250df; } .merge > .merge-icon.idle { background: #59636e; }
.merge-row { display: flex; gap: 12px; padding: 16px; border-bottom: 1px solid var(--border); }
.merge-row:last-child { border-bottom: 0; }
.merge-row h3 { margin: 0; font-size: 16px; line-height: 1.4; }
.merge-row p { margin: 0; color: var(--fg-muted); }
.ring { flex: none; display: grid; place-items: center; width: 32px; height: 32px; border-radius: 50%; color: #fff; background: var(--success-bg); }
.ring.bad { background: var(--danger-bg); } .ring.wait { background: #9a6700; } .ring.idle { background: #818b98; }
.check-row { display: flex; align-items: center; gap: 8px; padding: 8px 16px; border-bottom: 1px solid var(--border-muted); }
.check-row .title { min-width: 0; flex: 1; overflow-wrap: anywhere; }
.c-success { color: var(--success); } .c-failure { color: var(--danger); } .c-neutral { color: var(--fg-muted); } .c-pending { color: var(--attention); }

.sidebar section { padding: 16px 0; border-bottom: 1px solid var(--border); font-size: 12px; }
.sidebar section:first-child { padding-top: 0; }
.sidebar h2 { margin: 0 0 8px; font-size: 12px; color: var(--fg-muted); font-weight: 600; }
.sidebar .person { display: flex; align-items: center; gap: 8px; margin-top: 4px; }
.sidebar .person .icon { margin-left: auto; }

.checks { display: grid; grid-template-columns: 256px minmax(0, 1fr); min-height: 360px; }
.checks nav { border-right: 1px solid var(--border); background: var(--bg-muted); border-radius: 6px 0 0 6px; }
.checks nav h2 { margin: 0; padding: 12px 16px; font-size: 14px; border-bottom: 1px solid var(--border); }
.checks nav a { display: flex; gap: 8px; align-items: flex-start; padding: 8px 16px; color: var(--fg); overflow-wrap: anywhere; }
.check-run { padding: 16px 24px 24px; border-bottom: 1px solid var(--border); }
.check-run:last-child { border-bottom: 0; }
.check-head { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; padding-bottom: 12px; margin-bottom: 12px; border-bottom: 1px solid var(--border-muted); }
.check-head h2 { margin: 0; font-size: 20px; font-weight: 600; }
.check-head .actions { display: flex; flex-wrap: wrap; gap: 8px; margin-left: auto; }
.check-run h3.output-title { margin: 0 0 12px; font-size: 20px; }
.caption { margin: 24px 0 8px; padding-bottom: 6px; border-bottom: 1px solid var(--border-muted); font-size: 12px; font-weight: 600; letter-spacing: .03em; color: var(--fg-muted); text-transform: uppercase; }
.annotation { display: flex; gap: 12px; padding: 12px 16px; border: 1px solid var(--border); border-left-width: 4px; border-radius: 6px; margin-bottom: 8px; background: var(--bg); }
.annotation > div { flex: 1; min-width: 0; overflow-wrap: anywhere; }
.annotation.failure { border-left-color: var(--danger); } .annotation.warning { border-left-color: var(--attention); } .annotation.notice { border-left-color: var(--link); }
.annotation.failure > .icon { color: var(--danger); } .annotation.warning > .icon { color: var(--attention); } .annotation.notice > .icon { color: var(--link); }
.annotation .where { font-size: 12px; }
.annotation p { margin: 4px 0 0; white-space: pre-wrap; }
.annotation pre { margin: 8px 0 0; padding: 8px 12px; border-radius: 6px; background: var(--bg-muted); font-size: 12px; line-height: 1.45; white-space: pre-wrap; overflow-wrap: anywhere; }
.annotation summary { margin-top: 6px; font-size: 12px; color: var(--link); cursor: pointer; }

.file { margin-bottom: 16px; overflow: hidden; }
.file-head { display: flex; align-items: center; gap: 8px; padding: 8px 12px; border-bottom: 1px solid var(--border); background: var(--bg-muted); font-size: 12px; overflow-wrap: anywhere; }
.file-head a { color: var(--fg); font-weight: 600; }
.diffstat { display: inline-flex; align-items: center; gap: 6px; font-size: 12px; font-weight: 600; white-space: nowrap; }
.diffstat .plus { color: var(--success); } .diffstat .minus { color: var(--danger); }
.blocks { display: inline-flex; gap: 1px; } .blocks i { width: 8px; height: 8px; background: var(--neutral-muted); outline: 1px solid var(--border-muted); outline-offset: -1px; } .blocks i.p { background: var(--success-bg); } .blocks i.m { background: var(--danger-bg); }
.list { padding: 0; margin: 0; list-style: none; }
.list li { display: flex; gap: 8px; align-items: flex-start; padding: 12px 16px; border-bottom: 1px solid var(--border); overflow-wrap: anywhere; }
.list li:last-child { border-bottom: 0; }
.list a { color: var(--fg); font-weight: 600; }
h1.plain { margin: 0 0 16px; font-size: 24px; font-weight: 400; }

@media (max-width: 900px) {
  .page { padding: 16px; }
  .columns { grid-template-columns: minmax(0, 1fr); }
  .sidebar { order: -1; display: none; }
  .timeline { padding-left: 0; } .timeline::before, .item > .avatar, .merge > .merge-icon, .comment::before, .comment::after { display: none; }
  .checks { grid-template-columns: minmax(0, 1fr); } .checks nav { border-right: 0; border-bottom: 1px solid var(--border); }
  .pr-title { font-size: 24px; } .local { display: none; }
}
`;
