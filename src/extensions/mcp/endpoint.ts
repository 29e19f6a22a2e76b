/** The path of the tools, and the envelope of errors there. */

export const path = '/mcp';

/** The code of an error that JSON-RPC 2.0 has no code for. */
const ownError = -32_000;

/** An error of JSON-RPC 2.0, section 5.1. Its request was not read as far as its id. */
export const errorBody = (message: string, code = ownError) => ({
  jsonrpc: '2.0',
  id: null,
  error: { code, message },
});
