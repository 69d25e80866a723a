import { AdviseError } from '../../base/errors.ts';
import { LANGS, type Lang } from '../../model/lang.ts';

/** One input of the action. This table is its documentation, too: `action.yml` is generated from it. */
export interface ActionInput {
  readonly name: string;
  readonly default: string | null;
  readonly description: string;
}

export const INPUTS = [
  {
    name: 'path',
    default: '',
    description:
      'Profile on this runner: folder, zip, tar.gz or facts.json, one a line; several are the ranks of one job. Empty: the artifacts of a run.',
  },
  { name: 'baseline', default: '', description: 'Profiles to compare with, one a line; several are repeats of the same unchanged job.' },
  {
    name: 'baseline-branch',
    default: '',
    description:
      'Branch whose newest finished run with the same artifacts is compared with. Empty: the base branch of the pull request, where artifacts are read. `none`: nothing.',
  },
  { name: 'digest', default: '', description: 'Write the facts of `path`, a fraction of its size, to this file and do nothing else.' },
  {
    name: 'run-id',
    default: '',
    description:
      'Run whose artifacts are read when there is no path. Empty: the run that triggered this one (`workflow_run`), else this run.',
  },
  { name: 'artifacts', default: '', description: 'Names of artifacts, one a line, `*` for any characters. Empty: as the settings say.' },
  {
    name: 'config',
    default: '',
    description:
      'Settings file on this runner, for example of a checkout of the base branch. Empty: the one on the base branch, read from GitHub.',
  },
  { name: 'job', default: '', description: 'Which of the `jobs` of the settings this profile belongs to.' },
  {
    name: 'source',
    default: '',
    description:
      'Folder with the training script, to place advice on its lines. Empty: the files of the pull request, read from GitHub and never run.',
  },
  {
    name: 'comment',
    default: 'settings',
    description:
      'Comment on the pull request: `settings` (as `comment` of the settings says), `always` or `never`. Needs `pull-requests: write`.',
  },
  { name: 'annotations', default: 'true', description: 'Whether causes are shown at their lines, `true` or `false`.' },
  { name: 'fail', default: 'gate', description: 'What fails the step: `gate` (the gate of the settings) or `never`.' },
  { name: 'lang', default: '', description: 'Language, `en` or `zh`. Empty: as the settings say.' },
  { name: 'max-artifact-mb', default: '8192', description: 'Bytes of artifacts that are fetched at most.' },
  {
    name: 'artifact-hosts',
    default: '',
    description: 'Storage hosts of a GitHub Enterprise Server, one a line: `name`, `name:port` or `*.suffix`.',
  },
  { name: 'timeout-minutes', default: '30', description: 'Time limit of the analysis.' },
  { name: 'memory-mb', default: '4096', description: 'Memory limit of the analysis.' },
  {
    name: 'token',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the workflow
    default: '${{ github.token }}',
    description:
      'Token for settings, artifacts and the comment. Needs `contents: read` and `actions: read`, with `pull-requests: write` for the comment.',
  },
] as const satisfies readonly ActionInput[];

export const OUTPUTS = [
  { name: 'verdict', description: '`causes`, `quiet`, `incomplete`, `no-data` or `no-profile`; of several jobs the worst.' },
  { name: 'conclusion', description: '`success`, `failure` or `neutral`, as a check would say it.' },
  { name: 'findings', description: 'Number of causes.' },
  { name: 'saving-ms', description: 'What the causes cost together, ms per step, likely value; empty when only bounds are known.' },
  { name: 'saving-share', description: 'The same as a share of the step.' },
  { name: 'step-ms', description: 'Step time, ms.' },
  { name: 'report', description: 'File with the whole report, report.json (of several jobs a list of them).' },
] as const;

type Name = (typeof INPUTS)[number]['name'];
export type OutputName = (typeof OUTPUTS)[number]['name'];

export interface Inputs {
  readonly paths: readonly string[];
  readonly baseline: readonly string[];
  readonly baselineBranch: string | null;
  readonly digest: string | null;
  readonly runId: number | null;
  readonly artifacts: readonly string[];
  readonly config: string | null;
  readonly job: string | null;
  readonly source: string | null;
  readonly comment: 'settings' | 'always' | 'never';
  readonly annotations: boolean;
  readonly fail: 'gate' | 'never';
  readonly lang: Lang | null;
  readonly maxArtifactBytes: number;
  readonly artifactHosts: readonly string[];
  readonly timeoutMs: number;
  readonly memoryMb: number;
  readonly token: string | null;
}

/** Name of the variable an input arrives in. */
export function variableOf(input: string): string {
  return `INPUT_${input.toUpperCase().replaceAll('-', '_')}`;
}

/** Reads the inputs. Throws AdviseError with one clear sentence for the first that is wrong. */
export function readInputs(env: Readonly<Record<string, string | undefined>>): Inputs {
  const get = (name: Name): string | null => {
    const value = env[variableOf(name)]?.trim();
    if (value !== undefined && value !== '') return value;
    const fallback = INPUTS.find((input) => input.name === name)?.default ?? '';
    return fallback === '' || fallback.startsWith('${{') ? null : fallback;
  };
  const lines = (name: Name): string[] =>
    (get(name) ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
  const oneOf = <T extends string>(name: Name, allowed: readonly T[]): T => {
    const value = get(name);
    const found = allowed.find((one) => one === value);
    if (found === undefined)
      throw new AdviseError(
        'usage',
        { en: `input ${name} is "${value}"`, zh: `输入 ${name} 的值为「${value}」` },
        { en: `Use one of: ${allowed.join(', ')}.`, zh: `可用的值：${allowed.join('、')}。` },
      );
    return found;
  };
  const number = (name: Name, min: number, max: number): number => {
    const value = Number(get(name));
    if (!Number.isFinite(value) || value < min || value > max)
      throw new AdviseError(
        'usage',
        { en: `input ${name} must be a number from ${min} to ${max}`, zh: `输入 ${name} 须为 ${min}～${max} 之间的数` },
        { en: `Correct ${name} in the workflow.`, zh: `在工作流中改正 ${name}。` },
      );
    return value;
  };
  return {
    paths: lines('path'),
    baseline: lines('baseline'),
    baselineBranch: get('baseline-branch'),
    digest: get('digest'),
    runId: get('run-id') === null ? null : number('run-id', 1, Number.MAX_SAFE_INTEGER),
    artifacts: lines('artifacts'),
    config: get('config'),
    job: get('job'),
    source: get('source'),
    comment: oneOf('comment', ['settings', 'always', 'never']),
    annotations: oneOf('annotations', ['true', 'false']) === 'true',
    fail: oneOf('fail', ['gate', 'never']),
    lang: get('lang') === null ? null : oneOf('lang', LANGS),
    maxArtifactBytes: number('max-artifact-mb', 1, 1_000_000) * 1024 * 1024,
    artifactHosts: lines('artifact-hosts'),
    timeoutMs: number('timeout-minutes', 0.1, 6 * 60) * 60_000,
    memoryMb: number('memory-mb', 64, 1_000_000),
    token: get('token'),
  };
}
