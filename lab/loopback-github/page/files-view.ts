/** The changed files of a pull request, with annotations below their lines. */
import { diffCommits } from '../diff.ts';
import { diffBase } from '../present/pull.ts';
import type { PullRequest } from '../state.ts';
import { annotationBox } from './checks-view.ts';
import { diffStat, fileDiff } from './diff-view.ts';
import { type Html, html } from './html.ts';
import { icon } from './icons.ts';
import { headChecks, repositoryPath } from './parts.ts';

/** Lines added and removed in all files. */
export function changedLines(pull: PullRequest): { files: number; additions: number; deletions: number } {
  const files = diffCommits(pull.repository.objects, diffBase(pull), pull.head.sha);
  return {
    files: files.length,
    additions: files.reduce((sum, file) => sum + file.additions, 0),
    deletions: files.reduce((sum, file) => sum + file.deletions, 0),
  };
}

/** The files tab. */
export function filesView(pull: PullRequest): Html {
  const files = diffCommits(pull.repository.objects, diffBase(pull), pull.head.sha);
  const checks = headChecks(pull);
  return html`${files.map((file, index) => {
    const below = (line: number): Html | null => {
      const boxes = checks.flatMap((run) =>
        run.annotations
          .filter((annotation) => annotation.path === file.path && annotation.endLine === line)
          .map((annotation) => annotationBox(pull, run, annotation)),
      );
      return boxes.length === 0 ? null : html`${boxes}`;
    };
    const path = file.previousPath === null ? file.path : `${file.previousPath} → ${file.path}`;
    return html`<div class="box file"><div class="file-head mono">${icon('file')}<a href="${repositoryPath(pull.repository)}/blob/${pull.head.sha}/${file.path}">${path}</a>${diffStat(file.additions, file.deletions)}</div>${fileDiff(file, `diff-${index}`, below)}</div>`;
  })}`;
}
