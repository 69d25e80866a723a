import type { CommandClient, SettingsFacts } from '../../commands/command.ts';
import { resolveLayers } from '../../config/resolve.ts';
import { CONFIG_PATH, type Config, DEFAULT_CONFIG } from '../../config/schema.ts';
import { type Octokit, PERMISSIONS } from '../../github/client.ts';
import { settingsReader } from '../../github/contents.ts';
import { isInDiff, listChangedFiles } from '../../github/diff.ts';
import { safeFingerprint } from '../../github/publish/review.ts';
import type { PullRequest } from '../../github/pull-requests.ts';
import type { Acknowledgement, ShownFinding } from '../../model/acknowledgement.ts';
import type { L10n } from '../../model/lang.ts';
import { Report } from '../../model/report.ts';
import { REMEDIES } from '../../remedies/index.ts';
import { shownFindings } from '../../render/shown.ts';
import { RULES } from '../../rules/index.ts';
import { asAccepted } from './accepted.ts';
import { compareKept } from './compare-command.ts';
import type { Dependencies } from './dependencies.ts';
import { showPending } from './publish.ts';
import type { AnalyseRequest, Target } from './request.ts';
import { readSettings, sharedSettings } from './settings.ts';

/** Where and by whom commands are given. */
export interface CommandPlace {
  readonly target: Target;
  readonly pull: PullRequest;
  readonly octokit: Octokit;
  readonly actor: string;
  readonly headSha: string;
  readonly config: Config;
  /** When the comment was written; null: not known. */
  readonly writtenAt: number | null;
}

/** GitHub tells when a comment was written in whole seconds. */
const WRITTEN_WITHIN_MS = 1000;

/** Has the state of the commit said again; `index`: for which command of the comment. */
type Restate = (index: number, request: Pick<AnalyseRequest, 'isAsked' | 'mayReuse'>) => Promise<void>;
type Standing = Omit<CommandClient, 'reply' | 'requestAnalysis' | 'status'>;

/** Remembers that a person accepts findings, and has it said. Who, when, for which commit and why also stands in the log. */
export async function acknowledgeFindings(
  deps: Dependencies,
  place: Pick<CommandPlace, 'target' | 'pull' | 'actor' | 'headSha'>,
  findings: readonly ShownFinding[],
  { reason, until }: { readonly reason: string; readonly until: string | null },
): Promise<void> {
  const { target, pull, actor: by, headSha: sha } = place;
  const at = deps.now();
  const given = findings.map(
    ({ id, rule, title, saving }): Acknowledgement => ({ finding: id, rule, title, by, at, sha, until, reason, saving }),
  );
  await deps.store.acknowledgements.put(target.repository.id, pull.number, given);
  const ids = findings.map(({ id }) => id);
  deps.log.info({ repository: target.repository.id, pr: pull.number, by, sha, findings: ids, reason, until }, 'acknowledged');
}

/** What the commands of one comment may do that concerns the findings of the pull request and the settings of its repository. */
export function standingClients(deps: Dependencies, place: CommandPlace, restate: Restate): (index: number) => Standing {
  const { target, pull, octokit, headSha, config, writtenAt } = place;
  const { repository } = target;
  // Asked once: numbers mean what the summary showed when the comment was written, whatever its first command has changed.
  let state: ReturnType<Dependencies['store']['pullRequests']['find']> | null = null;
  const stateOnce = (): NonNullable<typeof state> => {
    state ??= deps.store.pullRequests.find(repository.id, pull.number);
    return state;
  };
  const shown = async (): Promise<readonly ShownFinding[] | null> => {
    const found = await stateOnce();
    if (found === null || found.reportedSha === null) return null;
    if (found.shown !== undefined) return found.shown;
    // Published before this was remembered.
    const kept = Report.safeParse(await deps.store.reports.latest(repository.id, found.reportedSha, pull.number));
    if (!kept.success) return null;
    return shownFindings(await asAccepted(deps, repository.id, pull.number, kept.data, { name: null, config }), null);
  };
  const shownSince = async (): Promise<L10n | null> => {
    const found = await stateOnce();
    if (found === null || found.reportedSha === null) return null;
    if (found.reportedSha !== headSha) {
      const [old, head] = [found.reportedSha.slice(0, 7), headSha.slice(0, 7)];
      return {
        en: `The summary shows \`${old}\`, and \`${head}\` has no report yet; please wait for it, or name the finding by its id`,
        zh: `摘要显示的是 \`${old}\`，\`${head}\` 尚无报告；请等待其报告，或用标识指明原因`,
      };
    }
    if (writtenAt === null || found.shownAt === undefined || found.shownAt < writtenAt + WRITTEN_WITHIN_MS) return null;
    return {
      en: 'The summary has changed since you wrote this, and its numbers may mean other findings now; please look again, or name the finding by its id',
      zh: '评论发表之后摘要已更新，编号对应的原因可能已变；请查看后重新发送，或用标识指明原因',
    };
  };
  const sayAnew = async (index: number): Promise<void> => {
    await restate(index, { isAsked: false, mayReuse: true });
    // The comment may still show the commit before.
    if ((await stateOnce())?.reportedSha !== pull.headSha) await showPending(deps, target, pull, config);
  };

  return (index) => ({
    shown,
    shownSince,
    acknowledgements: () => deps.store.acknowledgements.of(repository.id, pull.number),
    async acknowledge(findings, given) {
      await acknowledgeFindings(deps, place, findings, given);
      await sayAnew(index);
    },
    async takeBack(findings) {
      await deps.store.acknowledgements.remove(repository.id, pull.number, findings);
      deps.log.info({ repository: repository.id, pr: pull.number, by: place.actor, sha: headSha, findings }, 'acknowledgement taken back');
      await sayAnew(index);
    },
    async reportOf(finding) {
      const found = await stateOnce();
      if (found === null || found.reportedSha === null) return null;
      const kept = Report.safeParse(await deps.store.reports.withFinding(repository.id, found.reportedSha, pull.number, finding));
      return kept.success ? kept.data : null;
    },
    rules: () => RULES.map(({ id }) => id),
    async rule(id) {
      const rule = RULES.find((one) => one.id === id);
      if (rule === undefined) return null;
      const values = config.thresholds[id] ?? {};
      const options = Object.entries(rule.options).map(([name, { default: standard, unit, description }]) => {
        const value = values[name] ?? standard;
        return { name, value, isDefault: value === standard, unit, description };
      });
      const found = await stateOnce();
      const latest = Report.safeParse(
        found?.reportedSha == null ? null : await deps.store.reports.latest(repository.id, found.reportedSha, pull.number),
      );
      const outcome = latest.success ? latest.data.checked.find((one) => one.rule === id) : undefined;
      return {
        id,
        title: rule.title,
        isPreview: rule.maturity === 'preview',
        isDisabled: config.disabled_rules.includes(id),
        options,
        remedies: rule.remedies.flatMap((one) => REMEDIES.get(one)?.title ?? []),
        outcome: outcome === undefined ? null : { outcome: outcome.outcome, reason: outcome.reason },
      };
    },
    async suggest(sha) {
      const problem = await problemOfSuggesting(place, sha, await stateOnce());
      if (problem === null) await restate(index, { isAsked: true, mayReuse: true });
      return problem;
    },
    settings: () => settingsFacts(deps, target, pull.baseRef),
    compare: (sha, ref, job) => compareKept(deps, { target, pull, headSha: sha, config, ref, job }),
  });

  async function problemOfSuggesting(
    { config: { suggestions } }: CommandPlace,
    sha: string,
    found: Awaited<NonNullable<typeof state>>,
  ): Promise<L10n | null> {
    if (suggestions === 'off')
      return { en: 'The settings switch suggestions off (`suggestions: off`)', zh: '配置已关闭修改建议（`suggestions: off`）' };
    if (found === null || found.reportedSha !== sha) return { en: 'There is no report of this commit yet', zh: '该提交尚无报告' };
    const changes = (found.shown ?? []).filter(
      ({ state: of, change }) => change !== null && (of === 'open' || of === 'info' || of === 'part'),
    );
    if (changes.length === 0)
      return { en: 'No change of the last report can be taken over with one click', zh: '最近一次报告中没有可一键采纳的修改' };
    const known = new Set(found.suggested.map(safeFingerprint));
    const fresh = changes.filter(({ id }) => !known.has(safeFingerprint(id)));
    if (fresh.length === 0) return { en: 'Every suggestion has been posted already', zh: '所有修改建议均已提交' };
    const files = await listChangedFiles(octokit, repository, pull.number);
    if (fresh.some(({ change }) => isInDiff(files, change!.path, change!.startLine, change!.endLine))) return null;
    return {
      en: 'The changes lie outside the lines this pull request touches, where no suggestion can stand; the check shows them',
      zh: '这些修改位于本 PR 未改动的行，无法以建议形式提交；可在检查详情中查看',
    };
  }
}

async function settingsFacts(deps: Dependencies, target: Target, baseRef: string): Promise<SettingsFacts | L10n> {
  const { repository, installationId } = target;
  const parsed = await readSettings(deps, target, baseRef);
  if (!parsed.ok) {
    const [first] = parsed.problems;
    const at = first === undefined || first.line === null ? '' : `:${first.line}`;
    return {
      en: `The settings of the base branch cannot be used (\`${first?.file ?? CONFIG_PATH}${at}\`)`,
      zh: `基线分支的配置无效（\`${first?.file ?? CONFIG_PATH}${at}\`）`,
    };
  }
  const reader = settingsReader(
    await deps.github.client(installationId, repository, PERMISSIONS.read),
    repository,
    sharedSettings(deps, target),
  );
  const hidden = new Set<string>();
  const watching: typeof reader = {
    ...reader,
    async read(owner, repo, path, ref) {
      const file = await reader.read(owner, repo, path, ref);
      if (file?.isPrivate === true) hidden.add(`${owner}/${repo}:${path}`);
      return file;
    },
  };
  const layers = await resolveLayers(watching, { owner: repository.owner, repo: repository.name, ref: baseRef }, deps.catalog);
  const files = layers.ok ? layers.value : [];
  // Mappings of several files are merged key by key, so each key has an origin of its own.
  const isMapping = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
  const told = (
    key: string,
    value: unknown,
    has: (values: Readonly<Record<string, unknown>>) => boolean,
  ): SettingsFacts['keys'][number] => {
    const from = files.find(({ layer }) => has(layer.values))?.file ?? null;
    return { key, value, from, isHidden: from !== null && hidden.has(from) };
  };
  const keys = Object.keys(DEFAULT_CONFIG).flatMap((key) => {
    const value: unknown = parsed.value[key as keyof Config];
    if (!isMapping(value)) return [told(key, value, (values) => Object.hasOwn(values, key))];
    return Object.entries(value).map(([name, one]) =>
      told(`${key}.${name}`, one, ({ [key]: of }) => isMapping(of) && Object.hasOwn(of, name)),
    );
  });
  return { file: files[0]?.file ?? CONFIG_PATH, ref: baseRef, keys };
}
