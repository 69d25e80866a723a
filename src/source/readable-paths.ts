const READ_EXTENSIONS = ['.py', '.sh', '.bash', '.slurm', '.sbatch', '.yml', '.yaml', '.toml'];
const READ_NAMES = [
  /^(requirements|constraints)[\w.-]*\.txt$/,
  /^(Dockerfile|Containerfile)(\.[\w.-]+)?$/,
  /^[\w.-]+\.[Dd]ockerfile$/,
  /^setup\.cfg$/,
];

/** Folders that hold other people's code, build output or history. Never read. */
export const SKIPPED_FOLDERS: ReadonlySet<string> = new Set([
  '.git',
  '.hg',
  '.svn',
  'node_modules',
  'venv',
  '.venv',
  'site-packages',
  'dist-packages',
  '__pycache__',
  '.tox',
  '.nox',
  '.mypy_cache',
  '.eggs',
]);

/** Folders whose code is read, but is not the training code a change belongs to. */
const ASIDE_FOLDERS =
  /^(tests?|testing|unittests?|examples?|demos?|docs?|third[-_]?party|vendor|vendored|external|extern|deps|submodules)$/i;

/** A clean path relative to the repository root with forward slashes, or null for anything that leaves the root. */
export function cleanPath(path: string): string | null {
  if (path === '' || path.length > 1_000 || path.startsWith('/') || path.includes('\\') || path.includes('\0')) return null;
  const parts = path.split('/');
  return parts.some((part) => part === '' || part === '.' || part === '..') ? null : path;
}

/** True for the small set of files that advice can be about: Python, launch scripts, workflow files, requirements. */
export function isReadable(path: string): boolean {
  const parts = path.split('/');
  const name = parts.pop()!;
  if (parts.some((folder) => SKIPPED_FOLDERS.has(folder))) return false;
  if (parts.at(-1) === 'requirements' && name.endsWith('.txt')) return true;
  return READ_EXTENSIONS.some((extension) => name.endsWith(extension)) || READ_NAMES.some((pattern) => pattern.test(name));
}

export function isPython(path: string): boolean {
  return path.endsWith('.py');
}

/** Tests, examples and vendored copies: an edit there does not change the profiled run, or is not the author's to make. */
export function isAside(path: string): boolean {
  const parts = path.split('/');
  const name = parts.pop()!;
  return parts.some((folder) => ASIDE_FOLDERS.test(folder)) || /^(test_.*|.*_test|conftest|setup)\.py$/.test(name);
}
