import { isInterfaceType, isObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { printedSchema, schema } from '../../src/schema/schema.ts';

it('the schema is the content of schema.graphql (npx vitest run -u updates the file)', async () => {
  await expect(`${printedSchema()}\n`).toMatchFileSnapshot('../../schema.graphql');
});

it('the schema has a description for every type, field, argument and enum value', () => {
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
