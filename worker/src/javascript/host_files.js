// Files of the host for the file system in memory, and files of the answer: both travel in pieces through the supervisor, which decides about
// each file. What arrives with the program only saves questions about paths that it would refuse.
(native, realm) => {
  const WORKING = "/home/run/";
  const STORED = "/home/run/lockhouse:/result/"; // What a path of lockhouse://result/HANDLE becomes.
  const CODES = {
    denied: "EACCES", approval_declined: "EACCES", rate_limited: "EACCES", not_found: "ENOENT", unknown_tool: "ENOENT",
    result_too_large: "EFBIG", timeout: "ETIMEDOUT", invalid_arguments: "EINVAL",
  };
  const NO_ACCESS = { roots: [], refusal: null, elsewhere: null };
  const NOTHING = { given: [], read: NO_ACCESS, write: NO_ACCESS, server: null };
  let known = NOTHING; // What the supervisor has described, with missing parts from NOTHING.
  let given = new Map();

  const reply = (path, [succeeded, value]) => {
    if (succeeded) return value;
    // The name of the error at the end of a message, where the code does not say what it is.
    const named = value.code === "tool_failed" ? /^([^]*) \((E[A-Z]+)\)$/.exec(value.message) : null;
    if (named) throw realm.fileError(named[2], named[1], path);
    throw realm.fileError(CODES[value.code] ?? "EIO", value.message, path);
  };
  const { isBelow } = realm;
  const covers = ({ roots, refusal }, path) => refusal === null && isBelow(path, roots);
  const source = (path) => {
    if (path.startsWith(STORED)) return ["stored", path.slice(STORED.length)];
    if (path.startsWith(WORKING) && given.has(path.slice(WORKING.length))) return ["given", path.slice(WORKING.length)];
    return covers(known.read, path) ? ["host", path] : undefined;
  };
  const { stringify } = JSON;
  const callTool = (tool, path) => reply(path, native.ask("call", known.server, tool, stringify({ path }))).structured;
  const factsOf = ({ kind, bytes, modified }) => ({ isDirectory: kind === "folder", size: bytes, modifiedMs: modified * 1000, inode: 0 });
  const send = (kind, name, bytes, path) => {
    const { file, piece } = reply(path, native.ask("create_file", kind, name, String(bytes.length)));
    let sent = 0;
    do {
      const part = bytes.subarray(sent, sent + piece);
      reply(path, native.ask("write_piece", String(file), realm.latin1(part)));
      sent += part.length;
    } while (sent < bytes.length);
    // Decided about now that the supervisor has the whole content.
    if (kind === "host") reply(path, native.ask("finish_file", String(file), ""));
  };

  realm.filesHost = {
    fetch(path) {
      const from = source(path);
      if (!from) return undefined;
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
        return { isDirectory: false, size: given.get(path.slice(WORKING.length)), modifiedMs: 0, inode: 0 };
      }
      if (!covers(known.read, path)) return undefined;
      return factsOf(callTool("stat", path));
    },
    // The entries of a folder: pairs of a name and what `stat` returns; undefined if the program may not know.
    list(path) {
      if (!covers(known.read, path)) return undefined;
      const { entries, cut } = callTool("list", path);
      if (cut) throw realm.fileError("EFBIG", `the folder has more than ${entries.length} entries, which is the limit`, path);
      return entries.map((entry) => [entry.name, { ...factsOf(entry), isLink: entry.target !== undefined }]);
    },
    // Whether the path in memory is one of a file that arrived with the program.
    isGiven(path) {
      return path.startsWith(WORKING) && given.has(path.slice(WORKING.length));
    },
    maySave(path) {
      return covers(known.write, path);
    },
    // Makes a folder in an existing one. Whether it is new; undefined if the program may not make it.
    makeFolder(path) {
      return covers(known.write, path) ? callTool("mkdir", path).created : undefined;
    },
    // Why a program may not use a path of the host; null if it may try, undefined without the server `files`.
    refusal(path, writes) {
      const { roots, refusal, elsewhere } = writes ? known.write : known.read;
      return isBelow(path, roots) ? refusal : (elsewhere ?? undefined);
    },
    save(path, bytes) {
      send("host", path, bytes, path);
    },
  };
  // Takes over the description of the files that arrived with a program; undefined: there are none.
  realm.beginFiles = (described) => {
    known = { ...NOTHING, ...described };
    given = new Map(known.given);
    realm.ownServer = known.server;
    realm.setHostPlaces([...known.read.roots, ...known.write.roots], known.home);
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
