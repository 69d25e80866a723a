/** What other programs may import of this package. report.json is the contract: what else a module exports may change with any version. */
export { AdviseError } from './base/errors.ts';
export { type AnalyseInput, analyse, type EngineOptions, type Progress } from './engine/analyse.ts';
export { VERSION as version } from './engine/version.ts';
export type { Report } from './model/report.ts';
export { folderSourceTree } from './source/folder-source-tree.ts';
export { openSource, type ProfileSource } from './sources/index.ts';
