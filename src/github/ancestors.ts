import { type Octokit, type RepositoryRef, statusOf } from './client.ts';

const PAGE = 100;

/** Where the history of a head left that of its base branch; null when the two have none in common or one is not there. */
export async function mergeBaseOf(octokit: Octokit, repository: RepositoryRef, base: string, head: string): Promise<string | null> {
  try {
    const { data } = await octokit.rest.repos.compareCommitsWithBasehead({
      owner: repository.owner,
      repo: repository.name,
      basehead: `${base}...${head}`,
      // Behind the first page come no files, which may be megabytes.
      per_page: 1,
      page: 2,
    });
    return data.merge_base_commit.sha;
  } catch (error) {
    const status = statusOf(error);
    if (status === 404 || status === 422) return null;
    throw error;
  }
}

/** A commit and what came before it, newest first, in pages; none when the commit is not there. */
export async function* ancestorsOf(octokit: Octokit, repository: RepositoryRef, sha: string, limit: number): AsyncGenerator<string[]> {
  for (let page = 1; (page - 1) * PAGE < limit; page++) {
    let shas: string[];
    try {
      const { data } = await octokit.rest.repos.listCommits({ owner: repository.owner, repo: repository.name, sha, per_page: PAGE, page });
      shas = data.map((commit) => commit.sha);
    } catch (error) {
      const status = statusOf(error);
      // 409: the repository is empty.
      if (status === 404 || status === 409 || status === 422) return;
      throw error;
    }
    yield shas;
    if (shas.length < PAGE) return;
  }
}
