import { type ConfigLayer, type ConfigProblem, mergeLayers, type Parsed, parseConfigLayer, type RuleCatalog } from './parse.ts';
import { CONFIG_PATH, type Config } from './schema.ts';

/** Reads a text file of a repository; null when the file or the repository is not there. `ref` null: default branch. */
export type ReadRepositoryFile = (owner: string, repo: string, path: string, ref: string | null) => Promise<string | null>;

const MAX_LAYERS = 4;

function parseExtends(reference: string, owner: string): { owner: string; repo: string; path: string } {
  const [repository = '', path = CONFIG_PATH] = reference.split(':', 2);
  const [first = '', second] = repository.split('/', 2);
  return second === undefined ? { owner, repo: first, path } : { owner: first, repo: second, path };
}

/**
 * Settings that apply to a pull request: the file on its base ref, else the one in the owner's `.github` repository, and what
 * they extend. The same lookup as `octokit.config.get` with `branch`, with two differences: `_extends` never leaves the owner,
 * and a file with a mistake is reported with its line instead of thrown.
 */
export async function resolveConfig(
  read: ReadRepositoryFile,
  base: { owner: string; repo: string; ref: string },
  catalog?: RuleCatalog,
): Promise<Parsed<Config>> {
  const layers: ConfigLayer[] = [];
  const seen = new Set<string>();
  let next: { owner: string; repo: string; path: string; ref: string | null } | null = { ...base, path: CONFIG_PATH };
  let text = await read(next.owner, next.repo, next.path, next.ref);
  if (text === null && base.repo !== '.github') {
    next = { owner: base.owner, repo: '.github', path: CONFIG_PATH, ref: null };
    text = await read(next.owner, next.repo, next.path, null);
  }
  if (text === null) return { ok: true, value: mergeLayers([]) };

  while (next !== null) {
    const file = next.repo === base.repo ? next.path : `${next.owner}/${next.repo}:${next.path}`;
    const problem = (message: string): Parsed<Config> => {
      const problems: ConfigProblem[] = [{ file, line: null, message }];
      return { ok: false, problems };
    };
    seen.add(`${next.owner}/${next.repo}:${next.path}`.toLowerCase());
    const layer = parseConfigLayer(text ?? '', file, catalog);
    if (!layer.ok) return layer;
    layers.push(layer.value);
    if (layer.value.extends === null) break;
    const target = parseExtends(layer.value.extends, base.owner);
    if (target.owner.toLowerCase() !== base.owner.toLowerCase()) return problem('`_extends` must name a repository of the same owner');
    if (seen.has(`${target.owner}/${target.repo}:${target.path}`.toLowerCase())) return problem('`_extends` leads back to itself');
    if (layers.length >= MAX_LAYERS) return problem(`\`_extends\` is followed over at most ${MAX_LAYERS} files`);
    next = { ...target, ref: null };
    text = await read(next.owner, next.repo, next.path, null);
    if (text === null) return problem('`_extends` names a file that cannot be read');
  }
  return { ok: true, value: mergeLayers(layers) };
}
