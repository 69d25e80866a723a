/** Releases and their assets as the API shows them. */
import type { JsonObject } from '../json.ts';
import type { HubState, Release, Repository, StoredFile } from '../state.ts';
import { accountJson, nodeId } from './account.ts';
import { repositoryApi, repositoryHtml } from './repository.ts';

/** An asset of a release. */
export function assetJson(state: HubState, repository: Repository, release: Release, asset: StoredFile): JsonObject {
  return {
    id: asset.id,
    node_id: nodeId('RA', asset.id),
    name: asset.name,
    label: null,
    state: 'uploaded',
    content_type: asset.contentType,
    size: asset.declaredSize,
    digest: asset.digest,
    download_count: 0,
    created_at: asset.createdAt,
    updated_at: asset.createdAt,
    uploader: accountJson(state, release.author),
    url: `${repositoryApi(state, repository)}/releases/assets/${asset.id}`,
    browser_download_url: `${repositoryHtml(state, repository)}/releases/download/${release.tag}/${encodeURIComponent(asset.name)}`,
  };
}

/** A release with all of its assets. */
export function releaseJson(state: HubState, repository: Repository, release: Release): JsonObject {
  const api = `${repositoryApi(state, repository)}/releases/${release.id}`;
  const html = repositoryHtml(state, repository);
  return {
    id: release.id,
    node_id: nodeId('RE', release.id),
    tag_name: release.tag,
    target_commitish: repository.defaultBranch,
    name: release.tag,
    body: null,
    draft: false,
    prerelease: false,
    immutable: false,
    created_at: release.createdAt,
    published_at: release.createdAt,
    updated_at: release.createdAt,
    author: accountJson(state, release.author),
    assets: release.assets.map((asset) => assetJson(state, repository, release, asset)),
    url: api,
    html_url: `${html}/releases/tag/${release.tag}`,
    assets_url: `${api}/assets`,
    upload_url: `${api}/assets{?name,label}`,
    tarball_url: `${repositoryApi(state, repository)}/tarball/${release.tag}`,
    zipball_url: `${repositoryApi(state, repository)}/zipball/${release.tag}`,
  };
}
