#!/usr/bin/env node
// Starts the lockhouse program of the platform package, with the same arguments, streams and environment.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const path = require("node:path");
const tty = require("node:tty");

const NOT_AVAILABLE = 7; // The exit status "not available on this host", as in docs/errors.md.
const PLATFORM_PACKAGES = { "linux-x64": "@lockhouse/linux-x64" };

function fail(message) {
  console.error(`lockhouse: ${message}`);
  process.exit(NOT_AVAILABLE);
}

/** Returns the path of the program. Lockhouse finds its language engines in the same directory. */
function findProgram() {
  const platform = `${process.platform}-${process.arch}`;
  const name = PLATFORM_PACKAGES[platform];
  if (!name) fail(`there is no package for ${platform}: Lockhouse runs on Linux on x86-64 only`);
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", "lockhouse");
  } catch {
    return fail(
      `the package ${name} is not installed. npm leaves it out with --omit=optional, and on systems without the GNU C library. ` +
        "Install lockhouse again without --omit=optional.",
    );
  }
}

const child = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`${child.spawnfile} cannot be started: ${error.message}`));

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {
    // A terminal sends the signals of its keys to both processes.
    const fromTerminal = tty.isatty(0) && (signal === "SIGINT" || signal === "SIGQUIT");
    if (!fromTerminal) child.kill(signal);
  });
}
// The status of a process that a signal ended, as shells report it.
child.on("exit", (status, signal) => process.exit(signal ? 128 + constants.signals[signal] : status));
