/** Tools for language models at `/mcp` (Model Context Protocol). */

import { z } from 'zod';
import { setting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';
import { errorBody, path } from './endpoint.ts';

const settings = {
  MCP: setting(
    'the tools for language models at /mcp: those that read, or those that change something as well',
    'off, read or write',
    z.enum(['off', 'read', 'write']).default('off'),
  ),
};

export const mcp: Extension<typeof settings> = {
  settings,
  async open(config) {
    if (config.MCP === 'off')
      return {
        missingPages: { [path]: 'The setting MCP, which is off, switches the tools for language models on.' },
      };
    const { createMcp } = await import('./mcp.ts');
    return {
      endpoints: [
        {
          name: 'mcp',
          path,
          errorBody,
          createHandler: (pipeline) => createMcp({ ...pipeline, config, mayWrite: config.MCP === 'write' }),
        },
      ],
    };
  },
};
