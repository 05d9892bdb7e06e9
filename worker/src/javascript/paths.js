// The module `node:path`, for paths with slashes.
(native, realm) => {
  const normalizeNames = (names, isAbsolute) => {
    const kept = [];
    for (const name of names) {
      if (name === "" || name === ".") continue;
      if (name !== "..") kept.push(name);
      else if (kept.length && kept.at(-1) !== "..") kept.pop();
      else if (!isAbsolute) kept.push(name);
    }
    return kept;
  };
  const text = (path) => {
    if (typeof path === "string") return path;
    throw Object.assign(new TypeError(`The "path" argument must be of type string. Received ${typeof path}`), { code: "ERR_INVALID_ARG_TYPE" });
  };
  const isAbsolute = (path) => text(path)[0] === "/";
  const normalize = (path) => {
    const names = normalizeNames(text(path).split("/"), isAbsolute(path));
    const end = path.endsWith("/") && names.length ? "/" : "";
    return (isAbsolute(path) ? "/" : "") + names.join("/") + end || (path.endsWith("/") && path ? "./" : ".");
  };
  const join = (...paths) => normalize(paths.map(text).filter(Boolean).join("/") || ".");
  const resolve = (...paths) => {
    let whole = "";
    for (const path of paths.map(text).reverse()) {
      whole = path ? `${path}/${whole}` : whole;
      if (whole[0] === "/") break;
    }
    const names = (whole[0] === "/" ? whole : `/home/run/${whole}`).split("/");
    return `/${normalizeNames(names, true).join("/")}`;
  };
  const trimmed = (path) => (text(path).length > 1 ? path.replace(/\/+$/, "") || "/" : path);
  const dirname = (path) => {
    const at = trimmed(path).lastIndexOf("/");
    return at < 0 ? "." : trimmed(path.slice(0, at) || "/");
  };
  const basename = (path, suffix = "") => {
    const name = trimmed(path).split("/").at(-1);
    return suffix && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
  };
  const extname = (path) => {
    const name = basename(path);
    const at = name.lastIndexOf(".");
    return at > 0 && name !== ".." ? name.slice(at) : "";
  };
  const relative = (from, to) => {
    const [start, end] = [resolve(from), resolve(to)].map((path) => path.split("/").filter(Boolean));
    let shared = 0;
    while (shared < start.length && start[shared] === end[shared]) shared++;
    return [...start.slice(shared).map(() => ".."), ...end.slice(shared)].join("/");
  };
  const parse = (path) => {
    const [base, ext] = [basename(path), extname(path)];
    const dir = trimmed(path).includes("/") ? dirname(path) : "";
    return { root: isAbsolute(path) ? "/" : "", dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
  };
  const format = ({ dir, root = "", base, name = "", ext = "" }) => {
    const last = base ?? name + (ext && ext[0] !== "." ? `.${ext}` : ext);
    return dir ? (dir === root ? dir + last : `${dir}/${last}`) : root + last;
  };
  const path = { basename, delimiter: ":", dirname, extname, format, isAbsolute, join, normalize, parse, relative, resolve, sep: "/" };
  realm.standardModules.path = realm.standardModules["path/posix"] = Object.assign(path, { posix: path });
}
