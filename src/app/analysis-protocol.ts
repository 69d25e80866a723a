import type { EngineOptions } from '../engine/analyse.ts';
import type { Report } from '../model/report.ts';

/** What the analysis process is given: files on disk, settings and source text. No token, no address. */
export interface AnalysisRequest {
  readonly paths: readonly string[];
  readonly options: EngineOptions;
  readonly source: {
    readonly files: readonly (readonly [path: string, text: string])[];
    readonly patches: readonly (readonly [path: string, patch: string])[];
  } | null;
}

export interface AnalysisProgress {
  readonly phase: string;
  readonly done: number;
  readonly total: number;
}

/** The function an analyser module exports as `analyseArtifact`. */
export type AnalyseArtifact = (
  request: AnalysisRequest,
  hooks: { readonly onProgress: (progress: AnalysisProgress) => void; readonly signal: AbortSignal },
) => Promise<Report>;

/** Messages of the analysis process. */
export type AnalysisMessage =
  | { readonly type: 'started' }
  | { readonly type: 'progress'; readonly progress: AnalysisProgress }
  | { readonly type: 'report'; readonly report: Report }
  | { readonly type: 'refused'; readonly code: string; readonly message: string; readonly hint: string }
  | { readonly type: 'defect'; readonly message: string; readonly stack: string };

/** Codes of errors about the upload itself begin with this. */
export const ARCHIVE_ERROR = 'archive/';
