import type { L10n, Lang } from '../model/lang.ts';
import { clamp, code, joinMarkdown, link, markdown, plain, prose, type SafeMarkdown } from './escape.ts';
import type { WorkflowRef } from './views.ts';

/** What is awaited of a commit whose profiles have not all arrived. */
export interface AwaitedJob {
  /** null: the repository is one job. */
  readonly name: string | null;
  /** `held`: a maintainer has to approve its run. `none`: no run of it is there yet. `missed`: its runs have ended without a profile. */
  readonly state: 'arrived' | 'started' | 'queued' | 'held' | 'none' | 'missed';
  /** Runs that are under way, or wait for a runner. */
  readonly runs: readonly WorkflowRef[];
  /** True where the settings say which workflows make its profile. */
  readonly isNamed: boolean;
}

const MAX_RUNS = 5;
const TITLE_MAX = 70;
const NOTE = '<!-- npu-advisor:pending -->';

const STATE: Readonly<Record<AwaitedJob['state'], L10n>> = {
  arrived: { en: 'its profile has arrived', zh: 'profile 已收到' },
  started: { en: 'awaited, under way', zh: '等待中，正在运行' },
  queued: { en: 'awaited, waiting for a runner', zh: '等待中，排队等待 runner' },
  held: { en: 'awaited, its run waits for approval', zh: '等待中，运行待批准' },
  none: { en: 'awaited, no run yet', zh: '等待中，尚无运行' },
  missed: { en: 'its runs have ended without a profile', zh: '运行已结束，但没有 profile' },
};

function isAwaited({ state }: AwaitedJob): boolean {
  return state !== 'arrived' && state !== 'missed';
}

function namesOf(runs: readonly WorkflowRef[], lang: Lang): SafeMarkdown {
  const named = runs.slice(0, MAX_RUNS).map(({ name, url }) => link(plain(name, 80), url));
  const more = runs.length > MAX_RUNS ? [prose('…')] : [];
  return joinMarkdown([...named, ...more], lang === 'en' ? ', ' : '、');
}

function sentenceOf({ state, runs, isNamed }: AwaitedJob, lang: Lang): SafeMarkdown {
  const names = namesOf(runs, lang);
  if (state === 'queued') {
    return lang === 'en'
      ? markdown`Waiting for a runner: ${names}. The comment follows when a profile is uploaded.`
      : markdown`正在等待 runner：${names}。上传 profile 后，结果会显示在这里。`;
  }
  if (state === 'held') {
    return lang === 'en'
      ? markdown`A maintainer has to approve the run first: ${names}. The comment follows when it has uploaded a profile.`
      : markdown`运行须先由维护者批准：${names}。批准并上传 profile 后，结果会显示在这里。`;
  }
  if (lang === 'zh') {
    return isNamed ? markdown`采集 profile 的运行正在进行：${names}。` : markdown`工作流正在运行：${names}。结束后读取其上传的 profile。`;
  }
  return isNamed
    ? markdown`The profile run is underway: ${names}.`
    : markdown`A workflow run is underway: ${names}. When it has ended, the profile it uploads is read.`;
}

/** Title and summary of the check while profiles are awaited. null: there is no more to say than that. */
export function renderAwaited(
  jobs: readonly AwaitedJob[],
  sha: string,
  lang: Lang,
): { readonly title: string; readonly summary: string; readonly isUnderway: boolean } | null {
  const isUnderway = jobs.some(({ state }) => state === 'started');
  const head = sha.slice(0, 7);
  const [only] = jobs;
  if (only === undefined) return null;
  if (only.name === null) {
    if (only.runs.length === 0 || !isAwaited(only)) return null;
    const isHeld = only.state === 'held';
    const title =
      lang === 'en'
        ? `${isUnderway ? 'Run underway for' : isHeld ? 'Run to be approved,' : 'Waiting for a runner,'} ${head}`
        : `${head} ${isUnderway ? '的运行正在进行' : isHeld ? '的运行待批准' : '正在等待 runner'}`;
    return { title, summary: String(sentenceOf(only, lang)), isUnderway };
  }
  const arrived = jobs.filter(({ state }) => state === 'arrived').length;
  const title =
    lang === 'en'
      ? `${arrived} of ${jobs.length} profiles of ${head} have arrived`
      : `${head} 的 ${jobs.length} 份 profile 中已收到 ${arrived} 份`;
  const lines = jobs.map((job) => {
    const named = code(job.name ?? '');
    const said = prose(STATE[job.state][lang]);
    const runs = namesOf(job.runs, lang);
    const hasRuns = job.runs.length > 0 && isAwaited(job);
    if (lang === 'zh') return String(hasRuns ? markdown`- ${named}：${said}：${runs}` : markdown`- ${named}：${said}`);
    return String(hasRuns ? markdown`- ${named}: ${said}: ${runs}` : markdown`- ${named}: ${said}`);
  });
  const intro = lang === 'en' ? 'The result follows when the profiles of all jobs are there.' : '收齐各作业的 profile 后给出结果。';
  return { title: clamp(title, TITLE_MAX), summary: `${intro}\n\n${lines.join('\n')}`, isUnderway };
}

/** A comment of several jobs with a note at its end, which jobs of a newer commit have arrived and which are awaited. Replaces an older note. */
export function withAwaitedNote(body: string, jobs: readonly AwaitedJob[], old: string, next: string, lang: Lang): string {
  const before = body.split(`\n${NOTE}`, 1)[0] ?? body;
  const of = (some: readonly AwaitedJob[]): string => some.map(({ name }) => String(code(name ?? ''))).join(lang === 'en' ? ', ' : '、');
  const arrived = jobs.filter(({ state }) => state === 'arrived');
  const awaited = jobs.filter(isAwaited);
  const [from, to] = [String(code(old.slice(0, 7))), String(code(next.slice(0, 7)))];
  const parts =
    lang === 'en'
      ? [
          ...(awaited.length > 0 ? [`awaited for ${to}: ${of(awaited)}`] : []),
          ...(arrived.length > 0 ? [`arrived: ${of(arrived)}`] : []),
          `figures above are from ${from}`,
        ]
      : [
          ...(awaited.length > 0 ? [`${to} 等待：${of(awaited)}`] : []),
          ...(arrived.length > 0 ? [`已收到：${of(arrived)}`] : []),
          `以上数据来自 ${from}`,
        ];
  return `${before.trimEnd()}\n\n${NOTE}\n<sub>${parts.join(lang === 'en' ? '; ' : '；')}</sub>\n`;
}
