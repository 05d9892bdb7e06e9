// Security keys: asks one to sign what is approved, and registers one. The engine verifies what a key signs; nothing here decides.

import { post } from "./api.js";
import { h } from "./dom.js";
import { announce } from "./messages.js";
import { redraw } from "./state.js";

/** What the challenge of a registration is the hash of, before the code. */
const ENROLMENT_LABEL = "lockhouse enrolment 1\0";
/** ES256, EdDSA and RS256. */
const ALGORITHMS = [-7, -8, -257];
const RELYING_PARTY = "localhost";

function toText(bytes) {
  return btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function toBytes(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
}

function requireLocalhost() {
  if (location.hostname !== RELYING_PARTY || !navigator.credentials) {
    throw new Error(`Security keys work only at http://localhost:${location.port || "PORT"}: open the page there.`);
  }
}

/** Lets a registered key sign what `path` returns for the body. Returns the proof. */
export async function sign(path, body) {
  requireLocalhost();
  const { challenge, credentials, seconds } = await post(path, body);
  const { rawId, response } = await navigator.credentials.get({
    publicKey: {
      challenge: toBytes(challenge),
      rpId: RELYING_PARTY,
      allowCredentials: credentials.map((credential) => ({ type: "public-key", id: toBytes(credential) })),
      userVerification: "required",
      timeout: seconds * 1000,
    },
  });
  return {
    credential: toText(rawId),
    client_data: toText(response.clientDataJSON),
    authenticator_data: toText(response.authenticatorData),
    signature: toText(response.signature),
  };
}

/** Registers a key with the code of an administrator. */
async function register(code) {
  requireLocalhost();
  const { rawId, response } = await navigator.credentials.create({
    publicKey: {
      challenge: await crypto.subtle.digest("SHA-256", new TextEncoder().encode(ENROLMENT_LABEL + code)),
      rp: { id: RELYING_PARTY, name: "Lockhouse" },
      user: { id: crypto.getRandomValues(new Uint8Array(16)), name: "approvals", displayName: "Approvals of Lockhouse" },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: "public-key", alg })),
      authenticatorSelection: { userVerification: "required" },
      attestation: "none",
    },
  });
  const publicKey = response.getPublicKey();
  if (!publicKey) throw new Error("The browser does not know the kind of this key.");
  await post("/api/keys/register", {
    code,
    credential: toText(rawId),
    client_data: toText(response.clientDataJSON),
    authenticator_data: toText(response.getAuthenticatorData()),
    public_key: toText(publicKey),
    algorithm: response.getPublicKeyAlgorithm(),
  });
}

let outcome = null;
let isBusy = false;

async function submit(event) {
  event.preventDefault();
  if (isBusy) return;
  const field = event.currentTarget.elements.code;
  const code = field.value.replaceAll(/[\s-]/g, "").toUpperCase();
  isBusy = true;
  try {
    await register(code);
    outcome = "The key is registered.";
    field.value = "";
  } catch (error) {
    outcome = `The key is not registered: ${error.message}`;
  }
  isBusy = false;
  announce(outcome);
  redraw();
}

/** The form with which a person registers a key. */
export function registrationForm() {
  return h(
    "details",
    { key: "register-key", class: "panel" },
    h("summary", null, "Register a key"),
    h(
      "form",
      { onsubmit: submit },
      h("p", { class: "muted" }, "An administrator gets a code with “sudo lockhouse approvals enroll”. It registers one key."),
      h("label", null, "Code ", h("input", { name: "code", autocomplete: "off", spellcheck: "false", required: true })),
      " ",
      h("button", { type: "submit" }, "Register"),
      h("p", { class: "small-text" }, outcome ?? ""),
    ),
  );
}
