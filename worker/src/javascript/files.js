// The file system in memory: directories and files of one process, which are one execution or one session. It is no security
// boundary: the kernel refuses every file of the host. Its limits keep it within the worker's memory.
(native, realm) => {
  const { latin1, wellFormed } = realm;
  const { isView } = ArrayBuffer;
  const now = Date.now;

  const HOME = "/home/run";
  const ENTRIES_MAX = 10000;
  const NAME_BYTES_MAX = 255;
  const PATH_BYTES_MAX = 4096;
  const LEVELS_MAX = 64;
  const SERVERS = "servers"; // The name of the tree of MCP servers in the working directory, and in /.
  const READ_ONLY =
    "the folder servers shows the tools of the MCP servers and cannot be changed; write to another folder, or make one of this name first: mkdirSync('servers')";
  const MEMORY = [HOME, "/out", "/tmp"];
  const HOST_PATH =
    "not available in the Lockhouse sandbox: files of the host cannot be opened; a program has files in memory: use a relative path instead";
  // Error numbers and texts, as in Node.
  const FAILURES = {
    ENOENT: [2, "no such file or directory"],
    EACCES: [13, "permission denied"],
    EBUSY: [16, "resource busy or locked"],
    EEXIST: [17, "file already exists"],
    ENOTDIR: [20, "not a directory"],
    EISDIR: [21, "illegal operation on a directory"],
    EINVAL: [22, "invalid argument"],
    ENOSPC: [28, "no space left on device"],
    ENAMETOOLONG: [36, "name too long"],
    ENOTEMPTY: [39, "directory not empty"],
    EPERM: [1, "operation not permitted"],
    EIO: [5, "i/o error"],
    EROFS: [30, "read-only file system"],
    EFBIG: [27, "file too large"],
    ETIMEDOUT: [110, "connection timed out"],
  };

  // An error as Node's functions throw it. `call` is the name of the failed operation, and `dest` its second path.
  const fileError = (code, path, call, { words, dest } = {}) => {
    if (!Object.hasOwn(FAILURES, code)) code = "EIO";
    const [number, text] = FAILURES[code];
    const at = (path === undefined ? "" : ` '${path}'`) + (dest === undefined ? "" : ` -> '${dest}'`);
    const error = new Error(`${code}: ${words ?? text}, ${call}${at}`);
    return Object.assign(error, { errno: -number, code, syscall: call, path }, dest === undefined ? {} : { dest });
  };

  let inodes = 1;
  const used = { bytes: 0, entries: 0 };
  const directory = (entries = {}, fixed = false) =>
    ({ isDirectory: true, inode: inodes++, modifiedMs: now(), entries: new Map(Object.entries(entries)), fixed });
  // A file; `bytes` may be longer than `size`, and is zero from there on.
  const newFile = () => ({ isDirectory: false, inode: inodes++, modifiedMs: now(), bytes: new Uint8Array(), size: 0, changed: true });
  // Every path below a fixed directory that has no entry is one of the host.
  const home = directory();
  const root = directory({ home: directory({ run: home }, true), out: directory(), tmp: directory() }, true);

  const requireSpace = (count, call) => {
    const most = native.memoryBytes() / 2;
    if (count > 0 && used.bytes + count > most) {
      const words = `no space left: all files in memory together have at most ${most} bytes`;
      throw fileError("ENOSPC", undefined, call ?? "write", { words });
    }
  };

  const pathText = (path, call) => {
    if (isView(path)) path = native.fromUtf8(latin1(path), false);
    if (typeof path !== "string") {
      const error = new TypeError(`The "path" argument must be of type string. Received ${path === null ? "null" : typeof path}`);
      throw Object.assign(error, { code: "ERR_INVALID_ARG_TYPE" });
    }
    if (path.includes("\0")) {
      throw Object.assign(new TypeError("The argument 'path' must be a string without null bytes"), { code: "ERR_INVALID_ARG_VALUE" });
    }
    let text = wellFormed(path);
    if (hostHome !== undefined && text.startsWith("~/")) text = hostHome + text.slice(1);
    if (!text) throw fileError("ENOENT", "", call);
    const bytesOf = (part) => (part.length > 80 ? native.toUtf8(part).length : part.length);
    if (bytesOf(text) > PATH_BYTES_MAX || text.split("/").some((name) => bytesOf(name) > NAME_BYTES_MAX)) {
      throw fileError("ENAMETOOLONG", text, call);
    }
    return text;
  };
  const isBelow = (path, roots) => roots.some((root) => path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`));
  // Paths of the host in directories that are in memory, and the home directory of the host, for paths that begin with ~/.
  let hostPlaces = [];
  let hostHome;
  realm.setHostPlaces = (roots, home) => {
    hostHome = home ?? undefined;
    hostPlaces = roots.filter((root) => isBelow(root, MEMORY) && !MEMORY.includes(root));
  };
  const normal = (text) => {
    const names = [];
    for (const name of (text[0] === "/" ? text : `${HOME}/${text}`).split("/")) {
      if (name === "..") names.pop();
      else if (name && name !== ".") names.push(name);
    }
    return names;
  };

  // The tree of MCP servers, if it is in this directory and no file of the host has its place.
  const serversIn = (node) => {
    if (node !== home && node !== root) return undefined;
    const host = realm.filesHost;
    const isOfHost = node === home ? host?.isGiven(`${HOME}/${SERVERS}`) : host?.refusal(`/${SERVERS}`, false) === null;
    return isOfHost ? undefined : realm.serverTree();
  };
  const entryOf = (node, name) => (node.isListed ? node.find(name) : (node.entries.get(name) ?? (name === SERVERS ? serversIn(node) : undefined)));
  // The place for something new, which may have the name of the tree of MCP servers, and hides it then.
  const withoutServers = (place) => (place.node?.isListed && place.parent === home ? { ...place, node: undefined, problem: "ENOENT" } : place);
  const requireUnlisted = (place, call) => {
    if (place.node?.isListed || place.parent?.isListed) throw fileError("EROFS", place.given, call, { words: READ_ONLY });
  };
  // Where a path leads: `node` is undefined if nothing is there, and `parent` if its directory is missing, too.
  const locate = (given, call) => {
    const text = pathText(given, call);
    const names = normal(text);
    const place = { given: text, path: `/${names.join("/")}`, name: names.at(-1), isFolder: text.endsWith("/"), problem: undefined };
    if (hostPlaces.length && isBelow(place.path, hostPlaces)) return { ...place, parent: undefined, node: undefined, isHost: true, problem: "EPERM" };
    let node = root;
    for (const name of names) {
      if (!node || !node.isDirectory) return { ...place, parent: undefined, node: undefined, problem: node ? "ENOTDIR" : "ENOENT" };
      place.parent = node;
      const entry = entryOf(node, name);
      if (node.fixed && !entry) return { ...place, parent: undefined, node: undefined, isHost: true, problem: "EPERM" };
      node = entry;
    }
    if (!node) place.problem = "ENOENT";
    return { ...place, node };
  };
  const HOST_CHANGE = "files of the host can be read, listed and written as a whole, and folders can be made; nothing else is possible with them";
  // The error for a path of the host that a program may not use so.
  const refused = (place, call, writes = true) => {
    const words = realm.filesHost?.refusal(place.path, writes);
    return words === undefined ? fileError("EPERM", place.given, call, { words: HOST_PATH }) : fileError("EACCES", place.given, call, { words: words ?? HOST_CHANGE });
  };
  // The error for a path at which nothing is, or nothing that a program may read.
  const missing = (place, call) => {
    if (!place.isHost) return fileError(place.problem, place.given, call);
    return realm.filesHost?.refusal(place.path, false) === null ? fileError("ENOENT", place.given, call) : refused(place, call, false);
  };
  const requireChangeable = (place, call) => {
    if (place.isHost) throw refused(place, call);
    requireUnlisted(place, call);
    if (!place.parent || place.parent.fixed) throw fileError(place.problem ?? "EBUSY", place.given, call);
  };
  const add = (place, node, call) => {
    requireChangeable(place, call);
    if (place.path.split("/").length - 1 > LEVELS_MAX) throw fileError("ENAMETOOLONG", place.given, call);
    if (used.entries >= ENTRIES_MAX) {
      throw fileError("ENOSPC", place.given, call, { words: `there are at most ${ENTRIES_MAX} files and directories in memory` });
    }
    used.entries += 1;
    put(place, node);
  };
  const put = (place, node) => {
    place.parent.entries.set(place.name, node);
    place.parent.modifiedMs = now();
  };
  const take = (place) => {
    place.parent.entries.delete(place.name);
    place.parent.modifiedMs = now();
  };
  // Frees the space of a file or directory that has lost its name, with everything in it.
  const drop = (node) => {
    used.entries -= 1;
    if (node.isDirectory) node.entries.forEach(drop);
    else used.bytes -= node.size;
  };

  // Writes bytes at a position; a gap before it becomes zeros.
  const writeAt = (file, position, bytes, call) => {
    const end = position + bytes.length;
    if (end > file.size) {
      requireSpace(end - file.size, call);
      if (end > file.bytes.length) {
        const room = new Uint8Array(position === 0 ? end : Math.max(end, Math.ceil(file.size * 1.25)));
        room.set(file.bytes.subarray(0, file.size));
        file.bytes = room;
      }
      used.bytes += end - file.size;
      file.size = end;
    }
    file.bytes.set(bytes, position);
    touch(file);
  };
  const resize = (file, size, call) => {
    if (size > file.size) return writeAt(file, file.size, new Uint8Array(size - file.size), call);
    used.bytes -= file.size - size;
    file.size = size;
    file.bytes = file.bytes.slice(0, size);
    touch(file);
  };
  const touch = (file) => Object.assign(file, { modifiedMs: now(), changed: true });

  // Files of the host, by path, until the end of the run.
  const fetched = new Map();
  const fetchFile = (path) => {
    if (!fetched.has(path) && realm.filesHost) {
      const bytes = realm.filesHost.fetch(path);
      if (bytes) {
        requireSpace(bytes.length, "open");
        used.bytes += bytes.length;
        fetched.set(path, Object.assign(newFile(), { bytes, size: bytes.length, changed: false }));
      }
    }
    return fetched.get(path);
  };
  const forgetFetched = () => {
    for (const file of fetched.values()) used.bytes -= file.size;
    fetched.clear();
  };
  // The file at a path that a program wants to read.
  const fileAt = (path, call) => {
    const place = locate(path, call);
    const node = place.node ?? fetchFile(place.path);
    if (!node) throw missing(place, call);
    if (node.isDirectory) throw fileError("EISDIR", place.given, call);
    if (place.isFolder) throw fileError("ENOTDIR", place.given, call);
    return node;
  };
  // The status of a path: of memory or of the host; undefined if nothing is there.
  const statusAt = (place) => {
    const node = place.node ?? fetched.get(place.path);
    // The size of a file that shows a tool is known only when the tool has been described.
    if (node) return { isDirectory: node.isDirectory, get size() { return node.size ?? 0; }, modifiedMs: node.modifiedMs, inode: node.inode };
    return realm.filesHost?.stat(place.path);
  };

  // The files below /out that the program has written since the last call: pairs of name and bytes.
  realm.outputs = () => {
    const found = [];
    if (!used.entries) return found;
    const collect = (folder, prefix) => {
      for (const [name, node] of folder.entries) {
        if (node.isDirectory) collect(node, `${prefix}${name}/`);
        else if (node.changed) {
          node.changed = false;
          found.push([prefix + name, node.bytes.subarray(0, node.size)]);
        }
      }
    };
    collect(root.entries.get("out"), "");
    return found.sort(([a], [b]) => (a < b ? -1 : 1));
  };
  const serve = realm.serve;
  realm.serve = (list) => {
    if (fetched.size) forgetFetched();
    serve(list);
  };
  realm.fileError = (code, message, path) => fileError(code, path, "open", { words: message });
  realm.isBelow = isBelow;
  realm.requireFileSpace = requireSpace;
  realm.fileSystem = {
    add, directory, drop, fileAt, fileError, locate, missing, newFile, put, refused, requireChangeable, requireUnlisted, resize, statusAt, take,
    withoutServers, writeAt, LEVELS_MAX,
  };
}
