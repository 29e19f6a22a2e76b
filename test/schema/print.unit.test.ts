import { expect, it } from 'vitest';
import { printedSchema } from '../../src/schema/schema.ts';

it('the schema is the content of schema.graphql (npx vitest run -u updates the file)', async () => {
  await expect(`${printedSchema()}\n`).toMatchFileSnapshot('../../schema.graphql');
});
