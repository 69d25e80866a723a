/**
 * Finds properties of a value that no branch of its schema declares. JSON Schema lets them pass; GitHub ignores them, so a misspelt
 * property of a request would otherwise go unnoticed.
 */
import { isObject } from './json.ts';

type Schema = { [keyword: string]: unknown };

/** Paths (JSON pointers) of undeclared properties. References in `schema` are resolved in `root`. */
export function undeclaredProperties(root: unknown, schema: Schema, value: unknown): string[] {
  const found: string[] = [];
  walk(root, [schema], value, '', found);
  return found;
}

function walk(root: unknown, schemas: Schema[], value: unknown, path: string, found: string[]): void {
  if (typeof value !== 'object' || value === null) return;
  const flat = schemas.flatMap((schema) => branches(root, schema));
  if (Array.isArray(value)) {
    const items = flat.map((schema) => schema.items).filter(isObject);
    if (items.length > 0) for (const [index, item] of value.entries()) walk(root, items, item, `${path}/${index}`, found);
    return;
  }
  const declaring = flat.filter((schema) => isObject(schema.properties));
  if (declaring.length === 0) return;
  const open = flat.some((schema) => schema.additionalProperties !== undefined && schema.additionalProperties !== false);
  for (const [name, property] of Object.entries(value)) {
    const below = declaring.map((schema) => (schema.properties as Schema)[name]).filter(isObject);
    if (below.length > 0) walk(root, below, property, `${path}/${name}`, found);
    else if (!open) found.push(`${path}/${name}`);
  }
}

/** The schema itself and everything it is composed of. */
function branches(root: unknown, schema: Schema): Schema[] {
  if (typeof schema.$ref === 'string') {
    const target = schema.$ref
      .slice(2)
      .split('/')
      .reduce<unknown>((node, part) => (isObject(node) ? node[part] : undefined), root);
    return isObject(target) ? branches(root, target) : [];
  }
  const result = [schema];
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    const parts = schema[keyword];
    if (Array.isArray(parts)) for (const part of parts) if (isObject(part)) result.push(...branches(root, part));
  }
  return result;
}
