import { expect, it } from 'vitest';
import { complaintAbout, readConfig, settings } from '../../support/settings.ts';

it.each(['off', 'read', 'write'])('accepts MCP=%s', (MCP) => {
  expect(readConfig({ MCP })).toMatchObject({ MCP });
});

it.each(['on', 'READ', 'read,write'])('rejects MCP=%j', (wrong) => {
  expect(complaintAbout({ MCP: wrong })).toBe(
    `MCP is ${JSON.stringify(wrong)}, but takes ${settings.MCP?.takes}.`,
  );
});
