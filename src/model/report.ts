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
  text: z.string().describe('one measured fact, with its figures'),
  source: z.string().nullable().describe('file of the profile, relative to what was uploaded, e.g. rank0/trace_view.json'),
  rank: Rank.optional().describe('rank it was measured on'),
  step: z.number().int().nullable().optional().describe('number of the step, as the profile counts'),
  startUs: z.number().optional().describe('µs since the first event of that rank (rank clock)'),
  durationUs: z.number().optional(),
});

export const Location = z.object({
  file: z.string().describe('path in the repository; of `profile`: as the call stack names it'),
  line: z.number().int().positive(),
  symbol: z.string().nullable().describe('function the line is in'),
  provenBy: z
    .enum(['call-stack', 'profile', 'syntax'])
    .describe('profile: a frame of a call stack; call-stack: the same, checked against the repository; syntax: found in the source'),
  movedFrom: z.number().int().positive().optional().describe('line in the profiled code; the same call was found here'),
  oneOf: z.number().int().min(2).optional().describe('the profile fits this many places equally well; this is one of them'),
});

export const Edit = z.object({
  file: z.string(),
  startLine: z.number().int().positive(),
  endLine: z.number().int().positive().describe('last line that is replaced'),
  before: z.string().describe('these lines as they are'),
  after: z.string().describe('and as they should be'),
  kind: z.enum(['suggestion', 'comment-only']).describe('suggestion: provably safe and inside the diff, may be offered as one click'),
});

export const Recommendation = z.object({
  remedy: z.string().describe('id of the remedy'),
  title: z.string(),
  text: z.string().describe('why it helps, and how to check that it did'),
  code: z.string().nullable().describe('example to adapt, Python or shell; null when the edit says it all'),
  edits: z.array(Edit).describe('changes of lines in the repository'),
  preconditions: z.array(z.string()).describe('what has to hold before it is applied'),
  references: z.array(z.string()).describe('addresses of the documentation behind it'),
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
  rule: z.string().describe('id of the rule'),
  category: z.string(),
  title: z.string().describe('the cause in one line'),
  severity: z
    .enum(SEVERITIES)
    .describe(
      'by the share of the step it costs: critical from 15 %, high from 5 %, medium from 2 %; a bound and low confidence are medium at most',
    ),
  confidence: z.enum(CONFIDENCES),
  ranks: z.array(z.number().int().nonnegative()).describe('the ranks where the cause sits, not the ranks that suffer'),
  steps: z.array(z.number().int()).describe('steps it was seen in'),
  groups: z.array(z.string()).describe('communicators it concerns'),
  saving: Saving.nullable().describe('null: it costs no measurable time'),
  symptomOf: z.string().nullable().describe('id of the finding that explains this one'),
  maskedBy: z
    .array(z.string())
    .optional()
    .describe('ids of causes that take as long at the same time: this one saves nothing alone, only without them, too'),
  evidence: z.array(Evidence).describe('facts of the profile behind it'),
  caveats: z.array(z.string()).describe('what caps the confidence or the saving'),
  locations: z.array(Location).describe('places to change, best first'),
  recommendations: z.array(Recommendation).describe('what to change, best first'),
  maturity: z.enum(['stable', 'preview']).optional().describe('of the rule; absent: stable. A preview never fails a gate'),
  acknowledged: Acknowledged.optional().describe('somebody knows and accepts it: no gate fails for it'),
});

export const BreakdownRow = z.object({
  rank: Rank,
  step: z.number().int().nullable(),
  stepMs: Ms.nullable().describe('from the start of this step to that of the next, on the host'),
  stageMs: Ms.nullable().describe('Stage of step_trace_time: first to last work of the card, without Bubble'),
  computingMs: Ms.nullable().describe('the card computes'),
  communicationMs: Ms.nullable().describe('the card communicates, waiting for other ranks included'),
  exposedCommunicationMs: Ms.nullable().describe('communication that no computing covers'),
  overlappedMs: Ms.nullable().describe('communication beside computing'),
  freeMs: Ms.nullable().describe('the card does nothing, between its first and last work'),
  bubbleMs: Ms.nullable().describe('waits for another pipeline stage; contained in exposedCommunicationMs'),
  preparingMs: Ms.nullable().describe('start of the step to the first work of the card'),
  tailMs: Ms.nullable().describe(
    'last work of the card to the end of the step, of a capture of one step; with several it is part of the next one: 0',
  ),
  source: z.string().describe('file the row is from'),
});

export const Input = z.object({
  path: z.string().describe('in the upload'),
  kind: z.string().describe('what it was taken for'),
  bytes: z.number().nonnegative(),
  status: z.enum(['used', 'partial', 'ignored', 'refused']),
  note: z.string().describe('why it was not, or not wholly, used'),
});

export const CheckedRule = z.object({
  rule: z.string(),
  outcome: z.enum(OUTCOMES),
  reason: z.string().describe('of pass: what was measured; of notApplicable: what is missing'),
});

export const Gate = z.object({
  outcome: z.enum(['pass', 'fail', 'neutral']),
  because: z.array(z.string()).describe('why: the limits that were exceeded, or what could not be judged'),
  limits: z
    .array(z.enum(['severity', 'total_saving', 'rules', 'regression']))
    .optional()
    .describe('keys of the gate whose limit was exceeded'),
});

export const Job = z.object({
  ranks: z.array(z.number().int().nonnegative()).describe('ranks that were read'),
  unrankedFolders: z.number().int().nonnegative().describe('rank folders whose rank number is not recorded'),
  worldSize: z.number().int().positive().nullable().describe('ranks of the whole job'),
  worldSizeBasis: z.string().nullable().describe('how it is known'),
  missingRanks: z.array(z.number().int().nonnegative()).describe('ranks of the job whose profile is not here'),
  steps: z.array(z.number().int()).describe('steps used'),
  droppedSteps: z.array(z.object({ step: z.number().int(), why: z.string() })),
  stepTimeMs: Ms.positive().nullable().describe('median over the steps used, of the slowest rank'),
  stepBasis: z.string().describe('what the step time is: distance of step starts, one step, or the span of the device'),
  stepNoiseMs: Ms.nonnegative().nullable().describe('MAD of the step time; null with one step'),
  framework: z.string().nullable(),
  samplesPerStep: z.number().positive().nullable().describe('from the profile, else from the settings (`job`)'),
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
  breakdown: z.array(BreakdownRow).describe('where the time of each step goes, by rank'),
  findings: z.array(Finding).describe('causes, most severe first'),
  checked: z.array(CheckedRule).describe('every rule, exactly once'),
  totals: z.object({
    claimedMsPerStep: z
      .object({ likely: Ms.nonnegative().nullable(), ceiling: Ms.nonnegative() })
      .describe('all causes removed together; never more than the step'),
    unexplainedIdleMs: Ms.nonnegative().nullable().describe('idle time per step that no cause owns, on the rank that sets the pace'),
  }),
  comparison: Comparison.nullable().describe('null: no baseline'),
  gate: Gate.nullable().describe('null: the settings have no gate'),
  inputs: z.array(Input).describe('every file of the upload, and what became of it'),
  notes: z.array(z.string()).describe('what a reader should know of the profile'),
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
