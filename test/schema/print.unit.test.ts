import { isInterfaceType, isObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { printedSchema, schema } from '../../src/schema/schema.ts';

it('is printed in schema.graphql as it is (npx vitest run -u writes it anew)', async () => {
  await expect(`${printedSchema()}\n`).toMatchFileSnapshot('../../schema.graphql');
});

it('is printed once, however often it is asked for', () => {
  const [before, { description }] = [printedSchema(), schema];
  try {
    // Printed anew, it would be said.
    schema.description = 'Another';
    expect(printedSchema()).toBe(before);
  } finally {
    schema.description = description;
  }
});

it('describes every type, field, argument and enum value', () => {
  const own = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith('__'));
  const described = own.flatMap((type) => [
    { name: type.name, description: type.description },
    ...('getValues' in type
      ? type.getValues().map(({ name, description }) => ({ name: `${type.name}.${name}`, description }))
      : []),
    ...(isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : []).flatMap(
      (field) => [
        { name: `${type.name}.${field.name}`, description: field.description },
        ...field.args.map(({ name, description }) => ({
          name: `${type.name}.${field.name}(${name}:)`,
          description,
        })),
      ],
    ),
  ]);
  expect(described.length).toBeGreaterThan(200);
  expect(described.filter(({ description }) => !description)).toEqual([]);
});
