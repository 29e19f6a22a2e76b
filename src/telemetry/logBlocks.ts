/**
 * Writes lines to a file, a pipe or a socket in blocks: a write for each line costs more than all else that a cached response takes.
 * A write is done when its call returns, so lines stay in their order, and the last of them is written however a process
 * ends that is not killed. (What pino has for this writes in the background. What it has begun may come after what it
 * writes at the end; each time that nothing may be lost it waits for the disk; and it sleeps while a pipe is full, for ever
 * if nobody reads from it any more.)
 */

import { writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { systemCodeOf } from '../errors.ts';

export interface LineWriter {
  /** A line of a warning or an error, and all before it, is written when the call returns. */
  write(line: string): void;
  /** The same for a line of which there are as many as there are requests: it waits for its block, whatever its level. */
  writeInBlock(line: string): void;
}

/** In bytes: so much goes into a pipe in one piece, whoever else writes to it (`PIPE_BUF`). */
const blockSize = 4_096;

/** How long, in milliseconds, a line may wait for its block to be filled. */
const longestWait = 100;

/** How much, in bytes, waits for a reader that does not keep up, before lines are left out. */
const mostWaiting = 1024 * 1024;

/** How long, in milliseconds, until a reader that did not keep up is tried again: twice as long each time. */
const firstRetry = 2;

/** How long, in milliseconds, such a reader has to take the rest when the process ends. */
const lastWait = 1_000;

/**
 * @param file the number of an open file. A pipe or a socket must be such that what does not fit into it is refused, and
 * its writers need not wait.
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
    // One who is behind is tried again by the clock.
    if (blocks.add(line) && !isBehind && !blocks.writeFull()) flush();
    else timer ??= setTimeout(flush, longestWait).unref();
  }

  function write(line: string): void {
    writeInBlock(line);
    // What went wrong must be there whatever happens next.
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

/** What is on its way into the file: the block that is being filled, and those before it that are not written yet. */
function createBlocks(file: number) {
  let block = '';
  const full: Buffer[] = [];
  /** How many bytes are in the full ones. */
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
    /** In bytes, as far as there are no more of them than characters in the block that is being filled. */
    waiting: () => bytes + block.length,
    /** @returns whether the block before was full. */
    add(line: string): boolean {
      const isFull = block.length + line.length > blockSize;
      if (isFull) endBlock();
      block += line;
      return isFull;
    },
    /** @returns whether all full blocks were written: some reader may have no room for them, or the disk. */
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

/** Nobody ever changes it: to wait for that is to sleep. */
const nothing = new Int32Array(new SharedArrayBuffer(4));

/** Where a line of pino's says its level: `{"level":30,…` is `info`, 40 is `warn`. */
const levelAt = '{"level":'.length;
const warning = '4'.charCodeAt(0);

/** Whether the line says that something went wrong. */
function isWarning(line: string): boolean {
  return line.charCodeAt(levelAt) >= warning;
}

/** How many of the bytes were written: none where they would have to wait, all where nobody reads any more. */
function writeTo(file: number, bytes: Buffer): number {
  try {
    return writeSync(file, bytes);
  } catch (error) {
    return systemCodeOf(error) === 'EPIPE' ? bytes.length : 0;
  }
}

/** In place of the lines that were left out, as pino would write it. */
function noteOf(lost: number): string {
  const place = { pid: process.pid, hostname: hostname() };
  const entry = { level: 40, time: Date.now(), ...place, lost, msg: 'lines of the log were left out' };
  return `${JSON.stringify(entry)}\n`;
}
