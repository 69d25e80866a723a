/** Stack frames hold the user name of the machine that ran the job. */
export function withoutHome(file: string): string {
  return file.replace(/^(?:\/home\/[^/]+|\/root|\/Users\/[^/]+|[A-Za-z]:[\\/]Users[\\/][^\\/]+)(?=[\\/])/, '~');
}
