import type { AdviseError } from '../base/errors.ts';
import type { EngineOptions } from '../engine/analyse.ts';
import type { Share } from '../importers/index.ts';
import type { Report } from '../model/report.ts';
import type { Difference } from '../report/texts.ts';
import type { WantedParts } from '../sources/index.ts';

/** What the analysis process is given: files on disk, settings and source text. No token, no address. */
export interface AnalysisRequest {
  readonly paths: readonly string[];
  /** Those of the paths that are zips of which only the wanted files were fetched. */
  readonly partial: readonly string[];
  /** Runs to compare with, each a gzipped facts.json of ours. */
  readonly baseline?: readonly { readonly label: string; readonly path: string }[];
  /** Where the facts go that are kept to compare with later; null: nowhere. */
  readonly keep?: { readonly path: string; readonly maxBytes: number } | null;
  readonly options: EngineOptions;
  /** The report is wanted in the other language, too. */
  readonly inBoth?: boolean;
  readonly source: {
    readonly files: readonly (readonly [path: string, text: string])[];
    readonly patches: readonly (readonly [path: string, patch: string])[];
    readonly renames?: readonly (readonly [before: string, now: string])[];
  } | null;
}

/** Texts of files that the stacks of a profile name. */
export type NamedFiles = readonly (readonly [path: string, text: string])[];

/** A portion of a large job, to be read down to the facts of its ranks. */
export interface DigestRequest {
  readonly paths: readonly string[];
  readonly partial: readonly string[];
  /** Only these ranks of the one zip that is given; `isAlone`: the job has no other upload. */
  readonly share?: (Share & { readonly isAlone: boolean }) | null;
  /** Where the gzipped facts.json goes. */
  readonly out: { readonly path: string; readonly maxBytes: number };
}

/** A task of the analysis process. `parts`: of zips on disk of which only the directory is there, what an analysis will want. */
export type AnalysisTask =
  | { readonly kind: 'analyse'; readonly request: AnalysisRequest }
  | { readonly kind: 'digest'; readonly request: DigestRequest }
  | { readonly kind: 'parts'; readonly paths: readonly string[]; readonly share: Share | null };

/** What the parent answers to `named`. */
export interface NamedAnswer {
  readonly kind: 'files';
  readonly files: NamedFiles;
}

export type PartsAnswer =
  | { readonly ok: true; readonly parts: WantedParts /** Rank folders and archives, which may be read apart. */; readonly groups?: number }
  | { readonly ok: false; readonly code: string; readonly told: AdviseError['told'] };

export interface AnalysisProgress {
  readonly phase: 'read' | 'diagnose';
  readonly done: number;
  readonly total: number;
  /** Ranks whose files have all been read. */
  readonly ranks?: { readonly done: number; readonly total: number } | undefined;
}

/** A report, with what it says in the other language where that was asked for. */
export type ReportInBoth = Report & { readonly texts?: Difference };

/** The function an analyser module exports as `analyseArtifact`. */
export type AnalyseArtifact = (
  request: AnalysisRequest,
  hooks: {
    readonly onProgress: (progress: AnalysisProgress) => void;
    readonly signal: AbortSignal;
    /** Asked at most once for the files that stacks name and the source does not hold. */
    readonly onNamed?: (frames: readonly string[]) => Promise<NamedFiles>;
  },
) => Promise<ReportInBoth>;

/** Messages of the analysis process. */
export type AnalysisMessage =
  | { readonly type: 'started' }
  | { readonly type: 'progress'; readonly progress: AnalysisProgress }
  | { readonly type: 'report'; readonly report: ReportInBoth }
  | { readonly type: 'digested' }
  | { readonly type: 'named'; readonly frames: readonly string[] }
  | { readonly type: 'parts'; readonly answers: readonly PartsAnswer[] }
  | { readonly type: 'refused'; readonly code: string; readonly told: AdviseError['told'] }
  | { readonly type: 'defect'; readonly message: string; readonly stack: string };

/** Codes of errors about the upload itself begin with this. */
export const ARCHIVE_ERROR = 'archive/';
/** An analysis asked for a file that was left out: `wantedFiles` and an importer disagree. */
export const NOT_FETCHED = 'not-fetched';
/** The process ran out of memory. */
export const OUT_OF_MEMORY = 'analysis-memory';
