// Files of the host for the file system in memory, and files of the answer: both travel in pieces through the supervisor, which decides about
// each file. What arrives with the program only saves questions about paths that it would refuse.
(native, realm) => {
  const WORKING = "/home/run/";
  const STORED = "/home/run/lockhouse:/result/"; // What a path of lockhouse://result/HANDLE becomes.
  const CODES = {
    denied: "EACCES", approval_declined: "EACCES", rate_limited: "EACCES", not_found: "ENOENT", unknown_tool: "ENOENT",
    result_too_large: "EFBIG", timeout: "ETIMEDOUT", invalid_arguments: "EINVAL",
  };
  const NOTHING = { given: [], read: [], write: [], advice: null, server: null };
  let known = NOTHING;
  let given = new Map();

  const reply = (path, [succeeded, value]) => {
    if (!succeeded) throw realm.fileError(CODES[value.code] ?? "EIO", value.message, path);
    return value;
  };
  const isBelow = (path, roots) => roots.some((root) => path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`));
  const source = (path) => {
    if (path.startsWith(STORED)) return ["stored", path.slice(STORED.length)];
    if (path.startsWith(WORKING) && given.has(path.slice(WORKING.length))) return ["given", path.slice(WORKING.length)];
    return isBelow(path, known.read) ? ["host", path] : undefined;
  };
  const refuse = (path) => {
    if (known.advice === null || /^\/(home\/run|out|tmp)\//.test(path)) return undefined;
    throw realm.fileError("EACCES", known.advice, path);
  };
  const callTool = (tool, path) => {
    const [succeeded, value] = native.ask("call", known.server, tool, JSON.stringify({ path }));
    if (succeeded) return value.structured;
    if (["not_found", "denied", "unknown_tool"].includes(value.code)) return undefined;
    return reply(path, [succeeded, value]);
  };
  const send = (kind, name, bytes, path) => {
    const { file, piece } = reply(path, native.ask("create_file", kind, name, String(bytes.length)));
    let sent = 0;
    do {
      const part = bytes.subarray(sent, sent + piece);
      reply(path, native.ask("write_piece", String(file), realm.latin1(part)));
      sent += part.length;
    } while (sent < bytes.length);
  };

  realm.filesHost = {
    fetch(path) {
      const from = source(path);
      if (!from) return refuse(path);
      const { file, bytes: size } = reply(path, native.ask("open_file", ...from));
      realm.requireFileSpace(size);
      const content = new Uint8Array(size);
      for (let at = 0; ; ) {
        const piece = reply(path, native.readPiece(file));
        if (!piece.length) return content.subarray(0, at);
        content.set(piece, at);
        at += piece.length;
      }
    },
    stat(path) {
      if (path.startsWith(WORKING) && given.has(path.slice(WORKING.length))) {
        return { directory: false, size: given.get(path.slice(WORKING.length)), mtimeMs: 0 };
      }
      const facts = isBelow(path, known.read) ? callTool("stat", path) : undefined;
      return facts && { directory: facts.kind === "folder", size: facts.bytes, mtimeMs: facts.modified * 1000 };
    },
    list(path) {
      return isBelow(path, known.read) ? callTool("list", path)?.entries.map((entry) => entry.name) : undefined;
    },
    maySave(path) {
      return isBelow(path, known.write) || Boolean(refuse(path));
    },
    save(path, bytes) {
      send("host", path, bytes, path);
    },
  };
  // Takes over the description of the files that arrived with a program; undefined: there are none.
  realm.beginFiles = (described) => {
    known = described ?? NOTHING;
    given = new Map(known.given);
    realm.ownServer = known.server;
  };
  // Sends the files below /out to the supervisor, whose answer names those that it does not keep.
  realm.sendOutputs = () => {
    const outputs = realm.outputs();
    // Without iterators, which the program may have replaced.
    for (let at = 0; at < outputs.length; at++) {
      const name = outputs[at][0];
      try {
        send("answer", name, outputs[at][1], name);
      } catch (error) {
        if (!error?.code) throw error;
      }
    }
  };
}
