import { lexicographicSortSchema, printSchema } from 'graphql';
import { expect, it } from 'vitest';
import { schema } from '../../src/schema/schema.ts';

it('the schema is the content of schema.graphql (npx vitest run -u updates the file)', async () => {
  // Sorted, so that a new type or field does not move others.
  const printed = printSchema(lexicographicSortSchema(schema));
  await expect(`${printed}\n`).toMatchFileSnapshot('../../schema.graphql');
});
