import { z } from 'zod';
import { BaseCommit } from './history.ts';

/**
 * report.json: the only contract between analysis and display.
 * Times are milliseconds unless a key ends in `Us`. Ranks are global ranks; an unknown rank is null, never 0.
 * Texts are plain prose in `lang`; a span between backticks is a literal taken from the profile or from code
 * (`quoteLiteral` in `base/phrase.ts` guarantees that it holds no backtick, line break or control character).
 */

export const SEVERITIES = ['critical', 'high', 'medium', 'info'] as const;
export const CONFIDENCES = ['high', 'medium', 'low'] as const;
export const BASES = ['measured', 'modelled', 'bound'] as const;
export const OUTCOMES = ['pass', 'finding', 'notApplicable', 'error'] as const;

const Rank = z.number().int().nonnegative().nullable();
const Ms = z.number().finite();

export const Saving = z.object({
  basis: z
    .enum(BASES)
    .describe('measured: a reference run or rank shows it; modelled: replay; bound: only a bound is known, likely is null'),
  perStepMs: z.object({ floor: Ms.nonnegative(), likely: Ms.nonnegative().nullable(), ceiling: Ms.nonnegative() }),
  shareOfStep: z.number().min(0).max(1).describe('headline saving (likely, else ceiling) divided by the step time'),
  method: z.string().describe('how the figures were obtained, one sentence'),
});

export const Evidence = z.object({
  text: z.string(),
  source: z.string().nullable().describe('file of the profile, relative to what was uploaded, e.g. rank0/trace_view.json'),
  rank: Rank.optional(),
  step: z.number().int().nullable().optional(),
  startUs: z.number().optional().describe('µs since the first event of that rank (rank clock)'),
  durationUs: z.number().optional(),
});

export const Location = z.object({
  file: z.string(),
  line: z.number().int().positive(),
  symbol: z.string().nullable(),
  provenBy: z.enum(['call-stack', 'profile', 'syntax']),
  movedFrom: z.number().int().positive().optional().describe('line in the profiled code; the same call was found here'),
  oneOf: z.number().int().min(2).optional().describe('the profile fits this many places equally well; this is one of them'),
});

export const Edit = z.object({
  file: z.string(),
  startLine: z.number().int().positive(),
  endLine: z.number().int().positive(),
  before: z.string(),
  after: z.string(),
  kind: z.enum(['suggestion', 'comment-only']).describe('suggestion: provably safe and inside the diff, may be offered as one click'),
});

export const Recommendation = z.object({
  remedy: z.string(),
  title: z.string(),
  text: z.string(),
  code: z.string().nullable().describe('example to adapt, Python or shell; null when the edit says it all'),
  edits: z.array(Edit),
  preconditions: z.array(z.string()),
  references: z.array(z.string()),
});

/** A person, or the settings, knows of it and accepts it: shown apart, and no gate fails for it. */
export const Acknowledged = z.object({
  by: z.string().nullable().describe('login of the person; null: the settings file'),
  at: z.string().nullable().describe('day, UTC; null: the settings file'),
  until: z.string().nullable().describe('last day it holds, UTC; null: until the cost grows'),
  reason: z.string().describe('as written, foreign text'),
  saving: z
    .object({ likely: Ms.nonnegative().nullable(), ceiling: Ms.nonnegative() })
    .nullable()
    .describe('its saving when it was acknowledged; null: it had none, or the settings file'),
});

export const Finding = z.object({
  id: z.string().describe('stable fingerprint: the same problem on the next push has the same id'),
  rule: z.string(),
  category: z.string(),
  title: z.string(),
  severity: z.enum(SEVERITIES),
  confidence: z.enum(CONFIDENCES),
  ranks: z.array(z.number().int().nonnegative()).describe('the ranks where the cause sits, not the ranks that suffer'),
  steps: z.array(z.number().int()),
  groups: z.array(z.string()),
  saving: Saving.nullable(),
  symptomOf: z.string().nullable().describe('id of the finding that explains this one'),
  maskedBy: z
    .array(z.string())
    .optional()
    .describe('ids of causes that take as long at the same time: this one saves nothing alone, only without them, too'),
  evidence: z.array(Evidence),
  caveats: z.array(z.string()).describe('what caps the confidence or the saving'),
  locations: z.array(Location),
  recommendations: z.array(Recommendation),
  maturity: z.enum(['stable', 'preview']).optional().describe('of the rule; absent: stable. A preview never fails a gate'),
  acknowledged: Acknowledged.optional(),
});

export const BreakdownRow = z.object({
  rank: Rank,
  step: z.number().int().nullable(),
  stepMs: Ms.nullable(),
  stageMs: Ms.nullable(),
  computingMs: Ms.nullable(),
  communicationMs: Ms.nullable(),
  exposedCommunicationMs: Ms.nullable(),
  overlappedMs: Ms.nullable(),
  freeMs: Ms.nullable(),
  bubbleMs: Ms.nullable(),
  preparingMs: Ms.nullable(),
  tailMs: Ms.nullable(),
  source: z.string(),
});

export const Input = z.object({
  path: z.string(),
  kind: z.string(),
  bytes: z.number().nonnegative(),
  status: z.enum(['used', 'partial', 'ignored', 'refused']),
  note: z.string(),
});

export const CheckedRule = z.object({ rule: z.string(), outcome: z.enum(OUTCOMES), reason: z.string() });

export const Gate = z.object({
  outcome: z.enum(['pass', 'fail', 'neutral']),
  because: z.array(z.string()),
  limits: z
    .array(z.enum(['severity', 'total_saving', 'rules', 'regression']))
    .optional()
    .describe('keys of the gate whose limit was exceeded'),
});

export const Job = z.object({
  ranks: z.array(z.number().int().nonnegative()),
  unrankedFolders: z.number().int().nonnegative().describe('rank folders whose rank number is not recorded'),
  worldSize: z.number().int().positive().nullable(),
  worldSizeBasis: z.string().nullable(),
  missingRanks: z.array(z.number().int().nonnegative()),
  steps: z.array(z.number().int()).describe('steps used'),
  droppedSteps: z.array(z.object({ step: z.number().int(), why: z.string() })),
  stepTimeMs: Ms.positive().nullable(),
  stepBasis: z.string(),
  stepNoiseMs: Ms.nonnegative().nullable().describe('MAD of the step time; null with one step'),
  framework: z.string().nullable(),
  samplesPerStep: z.number().positive().nullable(),
  samplesPerSecond: z.number().positive().nullable(),
  tokensPerSecond: z.number().positive().nullable(),
  versions: z.object({ cann: z.string().nullable(), torchNpu: z.string().nullable(), torch: z.string().nullable() }),
  device: z.string().nullable(),
  level: z.string().nullable(),
});

export const Verdict = z.object({
  outcome: z.enum(['causes', 'quiet', 'incomplete', 'no-data']),
  text: z.string().describe('one sentence: what the cards waited for and what it costs'),
});

const COMPARED = ['regression', 'improvement', 'noise', 'incomparable'] as const;

const Run = z.object({ label: z.string(), steps: z.number().int().nonnegative(), stepTimeMs: Ms.nullable(), noiseMs: Ms.nullable() });

/** Head less baseline: a delta above 0 is more, which is worse where lower is better. */
const Change = z.object({
  base: z.number().finite().nullable(),
  head: z.number().finite().nullable(),
  delta: z.number().finite().nullable(),
  interval: z.tuple([z.number().finite(), z.number().finite()]).nullable().describe('95 % interval of the delta'),
});

export const Comparison = z.object({
  baseline: z.object({
    kind: z.enum(['npu', 'gpu']),
    label: z.string(),
    runs: z.array(Run).describe('more than one: repeats of the unchanged job, which tell how far runs differ'),
    ranks: z.array(z.number().int().nonnegative()),
    worldSize: z.number().int().positive().nullable(),
    stepTimeMs: Ms.nullable(),
    samplesPerStep: z.number().positive().nullable(),
    device: z.string().nullable(),
    level: z.string().nullable(),
    versions: z.object({ cann: z.string().nullable(), torchNpu: z.string().nullable(), torch: z.string().nullable() }),
    commit: BaseCommit.optional().describe('chosen from the history of the repository; absent: given by hand'),
  }),
  verdict: z.enum(COMPARED).describe('of the step time; incomparable: `refusals` says why'),
  text: z.string().describe('the verdict in one sentence'),
  stepTimeMs: Ms.nullable().describe('step time of this job over the ranks that are compared'),
  deltaMs: Ms.nullable().describe('step time less that of the baseline; null when the two cannot be subtracted'),
  deltaShare: z.number().finite().nullable(),
  interval: z.tuple([Ms, Ms]).nullable().describe('95 % interval of deltaMs, ms'),
  limitMs: Ms.nonnegative().nullable().describe('a smaller change is not called one'),
  spreadMs: Ms.nonnegative().nullable().describe('largest less smallest step time of the runs of the baseline; null with one run'),
  samples: z.object({ base: z.number().int().nonnegative(), head: z.number().int().nonnegative() }),
  method: z.string(),
  refusals: z.array(z.string()),
  warnings: z.array(z.string()),
  metrics: z.array(
    Change.extend({
      metric: z.string(),
      name: z.string(),
      unit: z.string(),
      better: z.enum(['lower', 'higher']),
      verdict: z.enum(COMPARED),
    }),
  ),
  pace: z.object({
    ranks: z.array(z.number().int().nonnegative()),
    standsOut: z.boolean().describe('the other ranks wait for this one'),
  }),
  acknowledged: Acknowledged.optional(),
  contributors: z
    .array(
      z.object({
        part: z.string(),
        what: z.string(),
        baseMs: Ms,
        headMs: Ms,
        deltaMs: Ms,
        details: z.array(
          z.object({
            by: z.enum(['operator', 'collective', 'class', 'module']),
            what: z.string(),
            baseMs: Ms,
            headMs: Ms,
            deltaMs: Ms,
            calls: z.object({ base: z.number().nonnegative(), head: z.number().nonnegative() }).describe('per step'),
          }),
        ),
      }),
    )
    .describe('parts of the step; their deltaMs add up to deltaMs. Parts below 1 % of the step are in the last one'),
  findings: z
    .array(
      z.object({
        id: z.string(),
        rule: z.string(),
        title: z.string(),
        change: z.enum(['new', 'gone', 'more', 'less']),
        baseMs: Ms.nullable().describe('headline saving; null when the baseline does not have the finding'),
        headMs: Ms.nullable(),
        deltaMs: Ms,
        bound: z.boolean().describe('only the upper bound of a saving is known'),
      }),
    )
    .describe('causes that came, went or changed, largest first; they overlap with the contributors'),
});

export const Report = z.object({
  schema: z.literal('npu-advisor.report/1'),
  tool: z.object({ name: z.literal('npu-advisor'), version: z.string() }),
  lang: z.enum(['en', 'zh']),
  verdict: Verdict,
  job: Job,
  breakdown: z.array(BreakdownRow),
  findings: z.array(Finding),
  checked: z.array(CheckedRule),
  totals: z.object({
    claimedMsPerStep: z.object({ likely: Ms.nonnegative().nullable(), ceiling: Ms.nonnegative() }),
    unexplainedIdleMs: Ms.nonnegative().nullable(),
  }),
  comparison: Comparison.nullable(),
  gate: Gate.nullable(),
  inputs: z.array(Input),
  notes: z.array(z.string()),
  attached: z.literal(true).optional().describe('a person attached the profile, nothing binds it to the commit; its gate is never passed'),
  patch: z.string().optional().describe('unified diff of all edits, as `git apply` takes it; absent without edits'),
  missing: z
    .array(z.object({ what: z.string(), consequence: z.string(), remedy: z.string() }))
    .describe('what this profile could not tell, what we therefore do not know, and how to find out'),
  views: z.record(z.string(), z.unknown()),
});

export type Report = z.infer<typeof Report>;
export type Finding = z.infer<typeof Finding>;
export type Saving = z.infer<typeof Saving>;
export type Evidence = z.infer<typeof Evidence>;
export type Location = z.infer<typeof Location>;
export type Edit = z.infer<typeof Edit>;
export type Recommendation = z.infer<typeof Recommendation>;
export type BreakdownRow = z.infer<typeof BreakdownRow>;
export type Input = z.infer<typeof Input>;
export type CheckedRule = z.infer<typeof CheckedRule>;
export type Gate = z.infer<typeof Gate>;
export type Acknowledged = z.infer<typeof Acknowledged>;
export type Comparison = z.infer<typeof Comparison>;
export type Severity = Finding['severity'];
export type Confidence = Finding['confidence'];
