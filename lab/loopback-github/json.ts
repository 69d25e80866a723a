/** A JSON object on its way out. */
export type JsonObject = { [key: string]: unknown };

/** Whether a value is a plain JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A copy of `base` with `overlay` merged in, objects recursively, everything else replaced. */
export function merged(base: JsonObject, overlay: JsonObject): JsonObject {
  const result: JsonObject = { ...base };
  for (const [key, value] of Object.entries(overlay)) {
    const old = result[key];
    result[key] = isObject(old) && isObject(value) ? merged(old, value) : value;
  }
  return result;
}
