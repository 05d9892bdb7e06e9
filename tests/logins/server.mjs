// An upstream server whose users log in at oidc-provider, an authorization server of npm. It counts the calls whose argument names
// another user than their token. `GET /figures` returns the counts, `POST /expire` ends the validity of all access tokens.
//
// Usage: node server.mjs [KEYS]
// KEYS is the address of the keys of an issuer: its tokens are exchanged for tokens of this server (RFC 8693) by the client
// "lockhouse". The server prints its own address as the first line.

import { createRequire } from "node:module";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const load = createRequire(new URL("../../build/logins/", import.meta.url));
const imported = async (name) => import(pathToFileURL(load.resolve(name)));
const { default: Provider } = await imported("oidc-provider");
const { createRemoteJWKSet, jwtVerify } = await imported("jose");

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const SCOPE = "use";
/** Clients renew a token that expires in half a minute, so this one is renewed some seconds after it was issued. */
const LIFETIME_S = 33;
/** Tokens of logins end by `/expire` alone, however long a slow machine takes. */
const LOGIN_LIFETIME_S = 3600;

const keys = process.argv[2] && createRemoteJWKSet(new URL(process.argv[2]));
const figures = { calls: 0, crossed: 0, renewals: 0, exchanges: 0, revocations: 0, logins: 0 };
/** The access tokens that are valid. */
const valid = new Set();

const server = createServer((request, response) => answer(request, response));
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const base = `http://127.0.0.1:${server.address().port}`;
const resource = `${base}/mcp`;
const resourceServer = { scope: SCOPE, audience: resource, accessTokenTTL: LOGIN_LIFETIME_S, accessTokenFormat: "opaque" };

const provider = new Provider(base, {
  clients: [
    {
      client_id: "lockhouse", client_secret: "exchange-secret", grant_types: [EXCHANGE],
      redirect_uris: [], response_types: [],
    },
  ],
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      getResourceServerInfo: () => resourceServer,
      useGrantedResource: () => true,
    },
  },
  scopes: ["openid", "offline_access", SCOPE],
  extraParams: ["user"],
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: (_context, client) => client.grantTypeAllowed("refresh_token"),
  pkce: { required: () => true },
  rotateRefreshToken: () => true,
  cookies: { keys: ["a key of the tests"] },
});
provider.on("grant.success", (context) => {
  if (context.oidc.params.grant_type === "refresh_token") figures.renewals += 1;
});
provider.on("access_token.saved", (token) => valid.add(token.jti));
provider.on("grant.revoked", () => (figures.revocations += 1));

provider.registerGrantType(EXCHANGE, async (context) => {
  const { client, params } = context.oidc;
  const asked = { token: params.subject_token, type: params.subject_token_type, resource: params.resource };
  const { payload } = await jwtVerify(asked.token, keys).catch(() => ({ payload: {} }));
  if (!payload.sub || asked.type !== ACCESS_TOKEN || asked.resource !== resource) {
    context.status = 400;
    context.body = { error: "invalid_grant" };
    return;
  }
  const token = new provider.AccessToken({ accountId: payload.sub, client, gty: EXCHANGE, expiresIn: LIFETIME_S, scope: SCOPE });
  token.resourceServer = new provider.ResourceServer(resource, resourceServer);
  figures.exchanges += 1;
  context.body = {
    access_token: await token.save(), issued_token_type: ACCESS_TOKEN, token_type: "Bearer", expires_in: LIFETIME_S,
  };
}, ["subject_token", "subject_token_type", "requested_token_type", "resource", "audience", "scope"], ["resource"]);

const callback = provider.callback();

async function answer(request, response) {
  const { pathname } = new URL(request.url, base);
  const json = (status, body, headers = {}) => {
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
  if (pathname === "/figures") return json(200, figures);
  if (pathname === "/expire") {
    valid.clear();
    return json(200, {});
  }
  if (pathname === "/.well-known/oauth-protected-resource/mcp") {
    return json(200, { resource, authorization_servers: [base], scopes_supported: [SCOPE] });
  }
  if (pathname.startsWith("/interaction/")) {
    return consent(request, response).catch((error) => json(500, { error: String(error) }));
  }
  if (pathname !== "/mcp") return callback(request, response);
  let body = "";
  for await (const part of request) body += part;
  const { id, method, params } = JSON.parse(body || "{}");
  const result = (result) => json(200, { jsonrpc: "2.0", id, result: { resultType: "complete", ...result } });
  const serverInfo = { name: "logins", version: "1" };
  switch (method) {
    case "server/discover":
      return result({
        supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, serverInfo, ttlMs: 0, cacheScope: "private",
      });
    case "tools/list": {
      const inputSchema = { type: "object", properties: { at: {} } };
      return result({ tools: [{ name: "look", inputSchema }], ttlMs: 0, cacheScope: "private" });
    }
    case "tools/call": {
      const user = await userOf(request.headers.authorization);
      if (!user) {
        const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
        return json(401, {}, { "WWW-Authenticate": `Bearer resource_metadata="${metadata}", scope="${SCOPE}"` });
      }
      figures.calls += 1;
      if (user !== params.arguments.at) figures.crossed += 1;
      return result({ content: [{ type: "text", text: user }] });
    }
    default:
      return id === undefined ? json(202, {}) : json(404, { jsonrpc: "2.0", id, error: { code: -32601, message: "no" } });
  }
}

/** The user of an access token that is valid for this server. */
async function userOf(authorization = "") {
  const found = await provider.AccessToken.find(authorization.replace(/^Bearer /, ""));
  return found && valid.has(found.jti) && found.aud === resource ? found.accountId : undefined;
}

/** Logs the user in whom the request names, and consents to everything that the client asks for. */
async function consent(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    figures.logins += 1;
    return provider.interactionFinished(request, response, { login: { accountId: params.user } });
  }
  const known = grantId && (await provider.Grant.find(grantId));
  const grant = known || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope ?? SCOPE);
  grant.addResourceScope(resource, SCOPE);
  const result = { consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

console.log(base);
