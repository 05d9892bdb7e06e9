// Results of tools, resources and prompts as values, and what a result has beside its value.
(native, realm) => {
  const { decode, isDecoded, parseExact, rawText } = realm;
  const { Error, TypeError } = globalThis;
  const { hasOwn, is } = Object;
  const { isArray } = Array;
  const unbound = (method) => Function.prototype.call.bind(method);
  const [prepend, removeLast] = [unbound(Array.prototype.unshift), unbound(Array.prototype.pop)];

  // A result that the MCP protocol does not permit.
  class MalformedResult extends Error {}

  const bytesOf = (base64, mimeType) => {
    try {
      return native.fromBase64(base64);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new MalformedResult(`the bytes of type ${mimeType ?? "application/octet-stream"} are not valid base64`);
    }
  };

  // A resource, with bytes in place of base64.
  const withBytes = ({ blob, ...rest }) => ({ ...rest, data: bytesOf(blob, rest.mimeType) });
  const block = (content, asText = (text) => text) => {
    if (typeof content !== "object" || content === null) throw new MalformedResult("a content block is no object");
    if (content.type === "text") return asText(content.text);
    if (typeof content.data === "string") return { ...content, data: bytesOf(content.data, content.mimeType) };
    if (typeof content.resource?.blob === "string") return withBytes(content.resource);
    return content.resource ?? content;
  };
  // The value of a tool's result: structured content, else text, else the content blocks. The supervisor sets `decode` if text
  // that is JSON shall be decoded, and `list` if even a single text becomes a list.
  const toValue = (envelope) => {
    if (hasOwn(envelope, "structured")) return envelope.structured;
    const asText = envelope.decode ? decode : (text) => text;
    const values = hasOwn(envelope, "text")
      ? [asText(envelope.text)]
      : (envelope.content ?? []).map((content) => block(content, asText));
    return values.length === 1 && !envelope.list ? values[0] : values;
  };

  // The parts of a resource, and a prompt.
  const part = (content) => {
    if (typeof content.text === "string") return content.text;
    return typeof content.blob === "string" ? withBytes(content) : content;
  };
  const parts = ({ contents }) => (contents.length === 1 ? part(contents[0]) : contents.map(part));
  const promptContent = (content) => (isArray(content) ? content.map((one) => block(one)) : block(content));
  const prompt = ({ description, messages }) => ({
    description: description ?? undefined,
    messages: messages.map((message) => ({ ...message, content: promptContent(message.content) })),
  });

  // Values of calls with what their results have beside them, and the bytes of these results, the latest first.
  const KEPT_RESULTS = 256;
  const KEPT_BYTES = 8 * 1024 * 1024;
  const SHORT = 1024;
  const kept = [];
  let keptBytes = 0;
  let hasDropped = false;
  const keepResult = (value, envelope, bytes) => {
    const hasMore = hasOwn(envelope, "content") || hasOwn(envelope, "meta");
    const isShort = typeof value === "string" ? value.length <= SHORT : typeof value !== "object" || value === null;
    if (!hasMore && !isShort) return;
    // A short value is kept so that an equal value of an earlier call is not taken for it.
    const size = hasMore ? bytes : 0;
    prepend(kept, { value, envelope, size });
    keptBytes += size;
    while (kept.length > KEPT_RESULTS || (keptBytes > KEPT_BYTES && kept.length > 1)) {
      keptBytes -= removeLast(kept).size;
      hasDropped = true;
    }
  };

  const textBlock = (text) => ({ type: "text", text });
  // A block with all of its members, and with bytes in place of base64.
  const wholeBlock = (content) => {
    if (typeof content.data === "string") return { ...content, data: bytesOf(content.data, content.mimeType) };
    const hasBytes = content.type === "resource" && typeof content.resource?.blob === "string";
    return hasBytes ? { ...content, resource: withBytes(content.resource) } : content;
  };
  const full = (envelope) => ({
    content: hasOwn(envelope, "content")
      ? envelope.content.map(wholeBlock)
      : hasOwn(envelope, "text") ? [textBlock(envelope.text)] : [],
    ...(hasOwn(envelope, "structured") ? { structuredContent: envelope.structured } : {}),
    ...(hasOwn(envelope, "meta") ? { _meta: envelope.meta } : {}),
  });
  // Everything that a server sent with a result: its content blocks, its structured content and its `_meta`, as far as it has
  // them. The value is what a call of this program gave, or the error that it threw. Content that only repeats the structured
  // content is left out.
  const fullResult = (value) => {
    if (value instanceof Error) {
      const json = realm.failedResult(value);
      return json ? full(parseExact(json)) : { content: [textBlock(value.message)] };
    }
    const found = kept.find((one) => is(one.value, value));
    if (found) return full(found.envelope);
    if (typeof value === "string" || isDecoded(value)) return { content: [textBlock(rawText(value))] };
    if (hasDropped) {
      throw new Error(`this result is no longer kept: fullResult knows the latest ${KEPT_RESULTS} results, up to 8 MiB; use it right after the call`);
    }
    return { content: [], structuredContent: value };
  };

  Object.assign(realm, { MalformedResult, fullResult, keepResult, parts, prompt, toValue });
}
