import { z } from 'zod';
import { LANGS } from '../model/lang.ts';

/** Where a repository keeps its settings. */
export const CONFIG_PATH = '.github/npu-advisor.yml';

/** Artifact names that are taken for a profile when the repository does not say otherwise. */
export const DEFAULT_ARTIFACTS = ['ascend-profile*', 'npu-profile*', '*ascend_pt*'];

const Pattern = z.string().min(1).max(200);
const RuleId = z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be a rule id such as dataloader-stall');

const OptionName = z.string().regex(/^[A-Za-z][A-Za-z0-9]{0,63}$/, 'must be the name of an option');

export const GateConfig = z
  .strictObject({
    severity: z
      .enum(['critical', 'high', 'medium'])
      .optional()
      .describe(
        'Fails when a counted finding is at least this severe. Counted: a likely saving is known and confidence is medium or high.',
      ),
    total_saving: z
      .strictObject({
        ms: z.number().positive().finite().optional().describe('Fails when the counted findings together cost more than this per step.'),
        share: z.number().gt(0).max(1).optional().describe('The same as a share of the step, 0 to 1.'),
      })
      .refine((limit) => limit.ms !== undefined || limit.share !== undefined, { message: 'needs ms or share' })
      .optional(),
    regression: z
      .strictObject({
        ms: z
          .number()
          .positive()
          .finite()
          .optional()
          .describe('Fails when a step takes more than this longer than in the baseline, and that is measured.'),
        share: z.number().gt(0).max(100).optional().describe("The same as a share of the baseline's step: 0.05 is 5 %."),
      })
      .refine((limit) => limit.ms !== undefined || limit.share !== undefined, { message: 'needs ms or share' })
      .optional(),
    rules: z
      .array(RuleId)
      .min(1)
      .max(100)
      .optional()
      .describe('Fails when one of these rules has a counted finding, however small. Neutral when one of them could not be checked.'),
  })
  .refine((gate) => Object.values(gate).some((limit) => limit !== undefined), {
    message: 'needs severity, total_saving, regression or rules',
  });

/** Findings a repository knows of and accepts. They are shown as such and fail no gate. */
export const MuteConfig = z.strictObject({
  rule: Pattern.describe('Rule id; `*` stands for any characters.'),
  path: Pattern.optional().describe(
    'Only findings whose lines all lie in files with such a name, for example `legacy/*` (`*` also stands for `/`).',
  ),
  until: z.iso.date().optional().describe('Last day it applies, UTC, for example 2027-01-31.'),
  reason: z.string().max(300).optional().describe('Why; shown beside the finding.'),
});

const JobName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,39}$/, 'must be a short name of a-z, 0-9, - and _');
const OnMissing = z.enum(['neutral', 'failure', 'skipped']);
const Thresholds = z.record(RuleId, z.record(OptionName, z.number().finite()));
const DisabledRules = z.array(RuleId).max(200);

/** What no profile tells of the job. */
export const JobConfig = z.strictObject({
  global_batch_size: z
    .number()
    .int()
    .positive()
    .max(1e9)
    .optional()
    .describe('Samples that all ranks together train per step. What the trainer recorded in the profile goes before it.'),
  sequence_length: z.number().int().positive().max(1e9).optional().describe('Tokens per sample.'),
});

/** One of several training jobs of a repository. What it says goes before the same key of the file. */
export const JobEntry = z.strictObject({
  paths: z
    .array(Pattern)
    .min(1)
    .max(100)
    .optional()
    .describe(
      'Files the job is made of, for example `models/bert/*` (`*` also stands for `/`). A pull request that changes none of them is not asked for its profile. Without: every pull request.',
    ),
  artifacts: z
    .array(Pattern)
    .min(1)
    .max(50)
    .optional()
    .describe('Names of its artifacts. Without: `ascend-profile-NAME*` and `npu-profile-NAME*`.'),
  workflows: z.array(Pattern).min(1).max(50).nullable().optional().describe('Workflow files its artifacts are taken from.'),
  files: z.array(Pattern).max(20).optional().describe('Profiles of it that a pull request adds or changes as files of the repository.'),
  on_missing: OnMissing.optional().describe('Conclusion of the check when its profile did not arrive.'),
  thresholds: Thresholds.optional().describe('Options of single rules.'),
  disabled_rules: DisabledRules.optional().describe('Rules that are not run.'),
  job: JobConfig.optional().describe('What no profile tells of it.'),
  gate: GateConfig.nullable().optional().describe('What fails the check.'),
  baseline: JobName.optional().describe(
    'Name its history is kept under, by default its own. Jobs that share it are compared with each other.',
  ),
});

/** `.github/npu-advisor.yml`. Every key is optional. */
export const ConfigSchema = z.strictObject({
  _extends: z
    .string()
    .regex(
      /^(?:[\w-]{1,39}\/)?(?!\.\.?(?::|$))[\w.-]{1,100}(?::(?!\/)(?!(?:.*\/)?\.\.?(?:\/|$))[\w./-]{1,200})?$/,
      'must be repository, owner/repository or owner/repository:path',
    )
    .optional()
    .describe('Another repository of the same owner whose settings are used where this file says nothing.'),
  artifacts: z
    .array(Pattern)
    .min(1)
    .max(50)
    .default(DEFAULT_ARTIFACTS)
    .describe('Names of workflow artifacts that hold profiles. `*` stands for any characters, `?` for one.'),
  workflows: z
    .array(Pattern)
    .min(1)
    .max(50)
    .nullable()
    .default(null)
    .describe('Workflow files whose artifacts are trusted, for example `.github/workflows/perf.yml`. null: all.'),
  lang: z.enum(LANGS).default('en').describe('Language of comments and checks.'),
  comment: z
    .enum(['off', 'on-findings', 'always'])
    .default('on-findings')
    .describe('When a comment is created. An existing comment is always edited to the present state.'),
  suggestions: z
    .enum(['auto', 'on-request', 'off'])
    .default('auto')
    .describe('One-click code suggestions: with every analysis, only after `/npu-advise suggest` or `run`, or never.'),
  baseline_branches: z
    .array(Pattern)
    .max(20)
    .default([])
    .describe('Branches besides the default branch whose profiles are kept to compare pull requests with, for example `release/*`.'),
  merge_queue: z
    .enum(['reuse', 'profile'])
    .default('reuse')
    .describe(
      "Check on the merge queue's own commits. `reuse`: concluded at once with what the pull request's check found. `profile`: waits for a profile of a `merge_group` run and applies the gate.",
    ),
  files: z
    .array(Pattern)
    .max(20)
    .default([])
    .describe(
      'Profiles that a pull request adds or changes as files of the repository, for example `perf/*.json`: a digest, a zip or a tar.gz each. Read when no run of the commit uploaded one.',
    ),
  release: z
    .strictObject({
      tag: z.string().min(1).max(200).describe('Tag of a release of this repository.'),
      assets: z
        .array(Pattern)
        .min(1)
        .max(20)
        .default(['npu-profile-{sha}*'])
        .describe(
          'Names of its assets. `{sha}` stands for 7 to 40 digits of the head commit and must be there, so that no commit gets the profile of another.',
        ),
    })
    .refine(({ assets }) => assets.every((asset) => asset.includes('{sha}')), { message: 'each of `assets` needs {sha}' })
    .nullable()
    .default(null)
    .describe(
      'A release whose assets hold profiles, for runners that cannot upload artifacts. Looked at when no run of the commit uploaded one.',
    ),
  attachments: z
    .boolean()
    .default(false)
    .describe(
      'Whether a profile may be attached to a pull request of a public repository: a file in its description whose name holds the first 7 digits of the head commit, or one that `/npu-advise run` is given the address of. It passes no gate, and takes back no failure of a run.',
    ),
  on_missing: OnMissing.default('neutral').describe('Conclusion of the check when no profile arrived.'),
  deadline_minutes: z
    .number()
    .int()
    .min(1)
    .max(14 * 24 * 60)
    .default(180)
    .describe(
      'Minutes after a push at which a check that still waits for a profile is concluded with on_missing. In a merge queue 50 unless it is set.',
    ),
  thresholds: Thresholds.default({}).describe('Options of single rules, by rule id; docs/rules names them.'),
  disabled_rules: DisabledRules.default([]).describe('Rules that are not run.'),
  job: JobConfig.default({}).describe(
    'What no profile tells of the job: `global_batch_size`, `sequence_length`. Known, throughput is reported.',
  ),
  gate: GateConfig.nullable().default(null).describe('What fails the check. null: the check only informs and its conclusion is neutral.'),
  mute: z
    .array(MuteConfig)
    .max(100)
    .default([])
    .describe(
      'Findings that are known and accepted, by `rule` and `path`, with `until` and `reason`. Shown apart, and no gate fails for them.',
    ),
  jobs: z
    .record(JobName, JobEntry)
    .refine((jobs) => Object.keys(jobs).length > 0, { message: 'needs at least one job' })
    .refine((jobs) => Object.keys(jobs).length <= 20, { message: 'names more than 20 jobs' })
    .nullable()
    .default(null)
    .describe(
      'Several training jobs in one repository, by name; each with `paths`, `artifacts`, `workflows`, `files`, `on_missing`, `thresholds`, `disabled_rules`, `job`, `gate`, `baseline` of its own. One comment and one check tell of all of them. null: one job.',
    ),
});

export type Config = z.infer<typeof ConfigSchema>;
export type GateConfig = z.infer<typeof GateConfig>;
export type MuteConfig = z.infer<typeof MuteConfig>;
export type JobConfig = z.infer<typeof JobConfig>;

/** What applies when a repository has no settings. */
export const DEFAULT_CONFIG: Config = ConfigSchema.parse({});
