/** An error whose hint may be shown to a user. Everything else is a defect and goes to the log only. */
export class AdviseError extends Error {
  readonly code: string;
  /** What to do, one sentence. */
  readonly hint: string;
  constructor(code: string, message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AdviseError';
    this.code = code;
    this.hint = hint;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
