import type { RuleCatalog } from '../../config/parse.ts';
import type { GitHub } from '../../github/client.ts';
import type { Logger } from '../../github/log.ts';
import type { OutboundPolicy } from '../../github/outbound.ts';
import type { Queue, Store } from '../../store/ports.ts';
import type { AnalysisRunner } from '../analysis-runner.ts';
import type { DetailsLinks } from '../details/link.ts';
import type { ServerOptions } from '../env.ts';
import type { KillPoint } from '../kill-point.ts';
import type { Need } from './budget.ts';

/** Everything a job touches. Built once by the work thread; tests may build their own. */
export interface Dependencies {
  readonly store: Store;
  readonly queue: Queue;
  readonly github: GitHub;
  readonly analysis: AnalysisRunner;
  readonly policy: OutboundPolicy;
  readonly catalog: RuleCatalog | undefined;
  readonly log: Logger;
  readonly options: Pick<
    ServerOptions,
    | 'maxArtifactBytes'
    | 'maxDailyBytes'
    | 'spreadBytes'
    | 'portionBytes'
    | 'downloadTimeoutMs'
    | 'analysisTimeoutMs'
    | 'attempts'
    | 'retryDelaySeconds'
    | 'analyses'
    | 'progressMs'
    | 'commandsPerHour'
    | 'isTest'
  >;
  /** Folder for downloads; each job makes its own below it. */
  readonly scratch: string;
  readonly killPoint: (point: KillPoint) => void;
  /** Aborted when the process is told to stop and its grace is over. */
  readonly signal: AbortSignal;
  /** Whether `signal` was aborted because nobody wants the result any more. */
  readonly isOvertaken?: () => boolean;
  /** Lets analyses run while slots and disk allow. */
  readonly analysisSlot: <T>(body: () => Promise<T>, need?: Need) => Promise<T>;
  readonly now: () => number;
  /** Writes addresses of details pages; null: there are none. */
  readonly links: DetailsLinks | null;
  /** Runs a phase of an analysis; how long it took is measured. */
  readonly timed: <T>(phase: 'fetch' | 'publish', body: () => Promise<T>) => Promise<T>;
}
