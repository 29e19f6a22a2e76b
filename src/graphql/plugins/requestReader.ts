/**
 * Hands on the parameters of a request, which the handler has read. Yoga's readers do not know `documentId`, fail for variables that are
 * not JSON, and read forms, which other sites can send. What is read once cannot be read in two ways.
 */

import { GraphQLError } from 'graphql';
import type { GraphQLParams } from 'graphql-yoga';
import type { GatewayPlugin } from '../context.ts';

export const useRequestReader = (): GatewayPlugin => ({
  onRequestParse({ serverContext: { given }, setRequestParser }) {
    setRequestParser(() => {
      if (given instanceof GraphQLError) throw given;
      // The next plugins check them.
      return given as GraphQLParams;
    });
  },
});
