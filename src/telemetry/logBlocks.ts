/**
 * Writes lines to a file, a pipe or a socket in blocks. A write for each line would cost more than all the rest of a cached
 * response.
 *
 * Writes are synchronous, so lines stay in order, and the last lines are written whenever the process exits without being
 * killed. pino's own destination was not usable: its writes in the background may end up behind those made at exit, it
 * waits for the disk whenever lines must not be lost, and it blocks while a pipe is full, forever if nobody reads it.
 */

import { writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { systemCodeOf } from '../errors.ts';

export interface LineWriter {
  /** Adds a line. A warning or an error, and all lines before it, are written when the call returns. */
  write(line: string): void;
  /** Adds a line that waits for its block to be full, whatever its level: for the lines of requests, which are many. */
  writeInBlock(line: string): void;
}

/** In bytes. Writes to a pipe of at most this size are not mixed with those of other processes (`PIPE_BUF`). */
const blockSize = 4_096;

/** How long, in milliseconds, a line may wait for its block to be filled. */
const longestWait = 100;

/** How much, in bytes, may wait for a slow reader before further lines are left out. */
const mostWaiting = 1024 * 1024;

/** How long, in milliseconds, until the first retry of a write that found no room. The time doubles with each retry. */
const firstRetry = 2;

/** How long, in milliseconds, a slow reader has to read the rest when the process exits. */
const lastWait = 1_000;

/**
 * @param file the descriptor of an open file. A pipe or a socket must be non-blocking.
 */
export function createLineWriter(file: number): LineWriter {
  const blocks = createBlocks(file);
  let lost = 0;
  let timer: NodeJS.Timeout | undefined;
  let retry = firstRetry;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    blocks.endBlock();
    if (blocks.writeFull()) {
      retry = firstRetry;
      if (lost > 0) tellLost();
      return;
    }
    timer = setTimeout(flush, retry).unref();
    retry = Math.min(2 * retry, longestWait);
  }

  function tellLost(): void {
    const note = noteOf(lost);
    lost = 0;
    write(note);
  }

  function writeInBlock(line: string): void {
    const isBehind = blocks.isBehind();
    if (isBehind && blocks.waiting() + line.length > mostWaiting) {
      lost++;
      return;
    }
    // While the reader is behind, the timer retries.
    if (blocks.add(line) && !isBehind && !blocks.writeFull()) flush();
    else timer ??= setTimeout(flush, longestWait).unref();
  }

  function write(line: string): void {
    writeInBlock(line);
    // An error has to be in the log even if the process is killed next.
    if (isWarning(line)) flush();
  }

  process.on('exit', () => {
    const end = performance.now() + lastWait;
    if (lost > 0) blocks.add(noteOf(lost));
    blocks.endBlock();
    while (!blocks.writeFull() && performance.now() < end) Atomics.wait(nothing, 0, 0, firstRetry);
  });
  return { write, writeInBlock };
}

/** The lines that are not written yet: the block that is being filled, and full blocks before it. */
function createBlocks(file: number) {
  let block = '';
  const full: Buffer[] = [];
  /** The size of the full blocks in bytes. */
  let bytes = 0;

  function endBlock(): void {
    if (block === '') return;
    const ended = Buffer.from(block);
    full.push(ended);
    bytes += ended.length;
    block = '';
  }

  return {
    endBlock,
    isBehind: () => full.length > 0,
    /** Roughly the number of bytes that wait. The block that is being filled counts with its characters. */
    waiting: () => bytes + block.length,
    /** @returns whether the line did not fit, so that a new block was begun. */
    add(line: string): boolean {
      const isFull = block.length + line.length > blockSize;
      if (isFull) endBlock();
      block += line;
      return isFull;
    },
    /** @returns whether all full blocks were written. The reader or the disk may have no room. */
    writeFull(): boolean {
      for (let [next] = full; next; [next] = full) {
        const written = writeTo(file, next);
        if (written === 0) return false;
        bytes -= written;
        if (written === next.length) full.shift();
        else full[0] = next.subarray(written);
      }
      return true;
    },
  };
}

/** Nobody ever changes it, so that waiting for a change is a synchronous sleep. */
const nothing = new Int32Array(new SharedArrayBuffer(4));

/** Where the level is in a line of pino's: `{"level":30,…` is `info`, 40 is `warn`. */
const levelAt = '{"level":'.length;
const warning = '4'.charCodeAt(0);

/** Whether the line is a warning or an error. */
function isWarning(line: string): boolean {
  return line.charCodeAt(levelAt) >= warning;
}

/** Returns how many bytes were written: 0 if there is no room, all of them if nobody reads any more. */
function writeTo(file: number, bytes: Buffer): number {
  try {
    return writeSync(file, bytes);
  } catch (error) {
    return systemCodeOf(error) === 'EPIPE' ? bytes.length : 0;
  }
}

/** The line that stands in for those that were left out, in pino's format. */
function noteOf(lost: number): string {
  const place = { pid: process.pid, hostname: hostname() };
  const entry = { level: 40, time: Date.now(), ...place, lost, msg: 'lines of the log were left out' };
  return `${JSON.stringify(entry)}\n`;
}
