import { quoteLiteral } from '../base/phrase.ts';
import { type ConfigLayer, mergeLayers, type Parsed, parseConfigLayer, type RuleCatalog, type Unusable } from './parse.ts';
import { nowhere } from './problems.ts';
import { CONFIG_PATH, type Config } from './schema.ts';

/** A settings file as it was read. `isPrivate`: not everybody who can read the pull request can read it. */
export interface SettingsFile {
  readonly text: string;
  readonly isPrivate: boolean;
}

/** How settings files of an owner's repositories are read. */
export interface SettingsReader {
  /** A text file; null when the file or the repository is not there. `ref` null: default branch. */
  read(owner: string, repo: string, path: string, ref: string | null): Promise<SettingsFile | null>;
  /** Whether a repository can be read at all; asked for the message about a file that cannot. */
  reaches(owner: string, repo: string): Promise<boolean>;
}

/** A file of the chain and what it sets. */
export interface ResolvedLayer {
  readonly file: string;
  readonly layer: ConfigLayer;
}

const MAX_LAYERS = 4;

interface Place {
  readonly owner: string;
  readonly repo: string;
  readonly path: string;
  readonly ref: string | null;
}

function parseExtends(reference: string, owner: string): Place {
  const [repository = '', path = CONFIG_PATH] = reference.split(':', 2);
  const [first = '', second] = repository.split('/', 2);
  return second === undefined ? { owner, repo: first, path, ref: null } : { owner: first, repo: second, path, ref: null };
}

function keyOf({ owner, repo, path }: Place): string {
  return `${owner}/${repo}:${path}`.toLowerCase();
}

/** Says that a file of a private repository has mistakes, and nothing of what stands in it. */
function withoutContent({ problems, lang }: Unusable, file: string): Unusable {
  const line = problems[0]?.line ?? null;
  const at = line === null ? { en: '', zh: '' } : { en: `, the first on line ${line}`, zh: `，第一处在第 ${line} 行` };
  const count = problems.length;
  const problem = nowhere(
    file,
    `${count} ${count === 1 ? 'mistake' : 'mistakes'}${at.en}; the repository is private, check the file there with npu-advise config validate`,
    `${count} 处错误${at.zh}；该仓库为私有仓库，请在其中用 npu-advise config validate 检查`,
  );
  return { ok: false, problems: [problem], lang };
}

/**
 * The files that apply at a ref: the one there, else the one in the owner's `.github` repository, and what they extend. The same
 * lookup as `context.config` of Probot, with two differences: `_extends` never leaves the owner, and a file with a mistake is
 * reported with its line instead of thrown.
 */
export async function resolveLayers(
  reader: SettingsReader,
  base: { owner: string; repo: string; ref: string },
  catalog?: RuleCatalog,
): Promise<Parsed<readonly ResolvedLayer[]>> {
  const layers: ResolvedLayer[] = [];
  const seen = new Set<string>();
  let place: Place = { ...base, path: CONFIG_PATH };
  let file = await reader.read(place.owner, place.repo, place.path, place.ref);
  if (file === null && base.repo.toLowerCase() !== '.github') {
    place = { owner: base.owner, repo: '.github', path: CONFIG_PATH, ref: null };
    file = await reader.read(place.owner, place.repo, place.path, null);
  }

  while (file !== null) {
    const name = place.repo.toLowerCase() === base.repo.toLowerCase() ? place.path : `${place.owner}/${place.repo}:${place.path}`;
    const layer = parseConfigLayer(file.text, name, catalog);
    if (!layer.ok) return file.isPrivate ? withoutContent(layer, name) : layer;
    layers.push({ file: name, layer: layer.value });
    seen.add(keyOf(place));
    const { extends: reference, extendsPlace } = layer.value;
    if (reference === null) break;

    const fail = (en: string, zh: string, of: { readonly isOutOfReach?: true } = {}): Unusable => {
      const message = { en: `\`_extends\`: ${en}`, zh: `\`_extends\`：${zh}` };
      const lang = layers.some(({ layer: { values } }) => values.lang === 'zh') ? 'zh' : 'en';
      return { ok: false, problems: [{ file: name, ...extendsPlace, message, ...of }], lang };
    };
    const next = parseExtends(reference, base.owner);
    const repository = quoteLiteral(`${next.owner}/${next.repo}`);
    if (next.owner.toLowerCase() !== base.owner.toLowerCase())
      return fail('must name a repository of the same owner', '只能引用同一所有者的仓库');
    if (seen.has(keyOf(next))) return fail('leads back to a file that was read already', '又指回了已读取的文件');
    if (layers.length >= MAX_LAYERS) return fail(`is followed over at most ${MAX_LAYERS} files`, `最多跟随 ${MAX_LAYERS} 个文件`);
    place = next;
    file = await reader.read(next.owner, next.repo, next.path, null);
    if (file !== null) continue;
    return (await reader.reaches(next.owner, next.repo))
      ? fail(`${repository} has no file ${quoteLiteral(next.path)}`, `${repository} 中没有文件 ${quoteLiteral(next.path)}`)
      : fail(
          `${repository} cannot be read: there is no such repository, or it is private. Private settings are read where this App is installed, and for a new \`_extends\` once it is merged`,
          `无法读取 ${repository}：仓库不存在，或为私有仓库。私有仓库需安装本 App；新增的 \`_extends\` 合并后才会读取`,
          { isOutOfReach: true },
        );
  }
  return { ok: true, value: layers };
}

/** Settings that apply to a pull request, from its base ref. */
export async function resolveConfig(
  reader: SettingsReader,
  base: { owner: string; repo: string; ref: string },
  catalog?: RuleCatalog,
): Promise<Parsed<Config>> {
  const layers = await resolveLayers(reader, base, catalog);
  return layers.ok ? mergeResolved(layers.value) : layers;
}

/** Lays the files of the chain over each other and fills in the defaults. */
export function mergeResolved(layers: readonly ResolvedLayer[]): Parsed<Config> {
  return mergeLayers(
    layers.map(({ layer }) => layer),
    layers[0]?.file ?? CONFIG_PATH,
  );
}
