/**
 * Generates random documents from the schema, with all features of the language, and variables for them. Nearly all of them are
 * valid: a response name stands for the same field with the same arguments wherever a document uses it.
 */

import {
  type GraphQLArgument,
  GraphQLBoolean,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  GraphQLNonNull,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isNonNullType,
  isObjectType,
  OperationTypeNode,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
} from 'graphql';
import { schema as ownSchema } from '../../src/schema/schema.ts';
import {
  type DrawnDocument,
  type DrawnRequest,
  drawGlobalId,
  drawValue,
  literalOf,
  type Names,
  Tape,
} from './requests.ts';

interface Variable {
  readonly name: string;
  readonly declaration: string;
  draw(tape: Tape): unknown;
}

interface Fragment {
  readonly name: string;
  readonly type: GraphQLCompositeType;
  readonly uses: ReadonlySet<Variable>;
}

interface Draft {
  readonly schema: GraphQLSchema;
  readonly tape: Tape;
  readonly names: Names;
  readonly oddNames: readonly string[];
  /** By the type and place for which they can be used. */
  readonly variables: Map<string, Variable[]>;
  readonly fragments: Fragment[];
  readonly fragmentTexts: string[];
  /** The field and arguments for which each response name stands. */
  readonly keys: Map<string, string>;
  /** How many selections may still be added. */
  left: number;
}

const maxDepth = 5;

/** Names of properties that every object has. A document that uses one is not compiled. */
const objectNames = ['__proto__', '__proto__', 'constructor', 'toString', 'valueOf'];
/** Names that compiled code, promises, results and the schema use. */
const otherNames = ['then', 'length', 'errors', 'data', 'coerced', 'class', '__context', 'nodes'];
const aliases = ['a', 'b', 'c'];

/** Generates a document. @param schema by default the gateway's own. */
export function drawDocument(numbers: Uint8Array, names: Names, schema = ownSchema): DrawnDocument {
  const tape = new Tape(numbers);
  if (tape.chance(15)) return drawLinks({ tape, names });
  const draft: Draft = {
    schema,
    tape,
    names,
    oddNames: tape.chance(20) ? objectNames : otherNames,
    variables: new Map(),
    fragments: [],
    fragmentTexts: [],
    keys: new Map(),
    left: 45,
  };
  const operations = [drawOperation(draft, 0)];
  while (operations.length < 3 && tape.chance(30)) operations.push(drawOperation(draft, operations.length));
  const isAlone = operations.length === 1;
  const texts = operations.map(({ kind, name, uses, selection }) => {
    const declared = [...uses].map(({ declaration }) => declaration);
    // An operation has a name unless it is the only one.
    const head = `${kind} ${isAlone && name.length === 1 ? '' : name}${declared.length > 0 ? `(${declared.join(', ')})` : ''}`;
    return head.trim() === 'query' ? selection : `${head} ${selection}`;
  });
  const isNamed = !(isAlone && operations.every(({ name }) => name.length === 1));
  const requests = Array.from({ length: 1 + tape.below(3) }, (): DrawnRequest => {
    const operation = tape.pick(operations);
    const isTold = isNamed && (!isAlone || tape.chance(50)) && !tape.chance(3);
    return {
      operationName: isTold ? operation.name : tape.chance(2) ? tape.pick(draft.oddNames) : undefined,
      variables: drawVariables(draft, operation.uses),
    };
  });
  return { text: [...texts, ...draft.fragmentTexts].join('\n'), requests };
}

/** A list with so many links in its filter that PostgreSQL would plan it for seconds, were each of them a join. */
function drawLinks({ tape, names }: { readonly tape: Tape; readonly names: Names }): DrawnDocument {
  const databaseId = () => ({ databaseId: { [tape.pick(['eq', 'ne', 'gt'])]: tape.pick(names.ids) } });
  const drawLink = (): object => {
    const meets = tape.pick([{}, { isActive: { eq: true } }, databaseId()]);
    const link = tape.chance(75) ? { template: meets } : { trainer: 'isActive' in meets ? {} : meets };
    return tape.chance(20) ? { not: link } : tape.chance(20) ? { or: [link] } : link;
  };
  const links = Array.from({ length: 1 + tape.below(16) }, drawLink);
  const where = { [tape.chance(40) ? 'or' : 'and']: links };
  return {
    text: 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount nodes { databaseId } } }',
    requests: [{ operationName: undefined, variables: { where } }],
  };
}

function drawOperation(draft: Draft, index: number) {
  const { tape } = draft;
  const kind = tape.chance(5) ? OperationTypeNode.MUTATION : OperationTypeNode.QUERY;
  const root = draft.schema.getRootType(kind);
  if (!root) throw new Error(`the schema has no ${kind}`);
  const uses = new Set<Variable>();
  draft.left = Math.max(draft.left, 12);
  const selection = drawSelection(draft, uses, root, maxDepth);
  const name = tape.chance(15) ? `${tape.pick(draft.oddNames)}${index || ''}` : 'QRS'.charAt(index);
  return { kind, name, uses, selection };
}

function drawVariables(draft: Draft, uses: ReadonlySet<Variable>): Record<string, unknown> | undefined {
  const { tape } = draft;
  const given: [string, unknown][] = [];
  for (const { name, draw } of uses) {
    if (tape.chance(12)) continue;
    const value = draw(tape);
    given.push([name, tape.chance(14) ? null : tape.chance(3) ? drawOddValue(tape) : value]);
  }
  if (tape.chance(5)) given.push([tape.pick(draft.oddNames), tape.chance(50)]);
  if (given.length === 0 && tape.chance(80)) return undefined;
  // Unlike an assignment, this makes a `__proto__` an entry like any other, as JSON does.
  return Object.fromEntries(given);
}

const drawOddValue = (tape: Tape): unknown =>
  tape.pick(['x', '', 1.5, 2 ** 53, true, [], [1], {}, { a: 1 }] as readonly unknown[] as readonly [string]);

function drawSelection(draft: Draft, uses: Set<Variable>, type: GraphQLCompositeType, depth: number): string {
  const { tape, schema } = draft;
  const all = isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
  const meta =
    type === schema.getQueryType() && tape.chance(3) ? [SchemaMetaFieldDef, TypeMetaFieldDef] : all;
  const usable = depth > 0 ? meta : all.filter((field) => isLeafType(getNamedType(field.type)));
  const selections: string[] = [];
  const drawn: GraphQLField<unknown, unknown>[] = [];
  do {
    draft.left--;
    const canNest = depth > 0 && draft.left > 0;
    if (usable.length === 0 || tape.chance(7)) selections.push(drawTypename(draft, uses));
    else if (canNest && tape.chance(isAbstractType(type) ? 60 : 28))
      selections.push(drawFragment(draft, uses, type, depth));
    else {
      // The same field again with other arguments and another selection: optimizations are likely to fail here.
      const entities = meta.filter(({ name }) => name === '_entities');
      const grouped = usable.filter(isGrouped);
      const some =
        entities.length > 0 && tape.chance(30)
          ? entities
          : grouped.length > 0 && tape.chance(15)
            ? grouped
            : usable;
      const field = tape.pick(drawn.length > 0 && tape.chance(25) ? drawn : some);
      drawn.push(field);
      selections.push(drawField(draft, uses, field, canNest ? depth : 0));
    }
  } while (selections.length < 6 && draft.left > 0 && tape.chance(60));
  return `{ ${selections.join(' ')} }`;
}

function drawTypename(draft: Draft, uses: Set<Variable>): string {
  return `${drawKey(draft, '__typename', '__typename')}__typename${drawDirectives(draft, uses)}`;
}

function drawField(
  draft: Draft,
  uses: Set<Variable>,
  field: GraphQLField<unknown, unknown>,
  depth: number,
): string {
  const { tape } = draft;
  const type = getNamedType(field.type);
  if (isCompositeType(type) && depth <= 0) return drawTypename(draft, uses);
  const given = field.args.filter(
    (argument) => isNonNullType(argument.type) || tape.chance(chanceOf(field, argument)),
  );
  const list = given.map((argument) => `${argument.name}: ${drawArgument(draft, uses, argument)}`);
  const call = `${field.name}${list.length > 0 ? `(${list.join(', ')})` : ''}`;
  const key = drawKey(draft, field.name, `${call}: ${field.type}`);
  // `groups` has a directive more often: groups that it leaves out must not fail for being too many.
  const directives = drawDirectives(draft, uses, field.name === 'groups' ? 50 : 22);
  const selection = isCompositeType(type) ? ` ${drawSelection(draft, uses, type, depth - 1)}` : '';
  return `${key}${call}${directives}${selection}`;
}

/** Whether a field fails when there are too many groups. */
const isGrouped = ({ args }: GraphQLField<unknown, unknown>) => args.some(({ name }) => name === 'maxGroups');

/** In percent: how often an argument is given. Of statistics mostly the grouping arguments are: with all given, one is usually invalid. */
const chanceOf = (field: GraphQLField<unknown, unknown>, { name }: GraphQLArgument): number => {
  if (!isGrouped(field)) return 25;
  return name === 'by' || name === 'maxGroups' ? 80 : 10;
};

/** The alias of a field with its colon, if it needs one or gets one by chance. */
function drawKey(draft: Draft, fieldName: string, meaning: string): string {
  const { tape, keys } = draft;
  const wanted = tape.chance(15)
    ? tape.pick(draft.oddNames)
    : tape.chance(12)
      ? tape.pick(aliases)
      : fieldName;
  let key = wanted;
  for (let number = 1; (keys.get(key) ?? meaning) !== meaning; number++) key = `${fieldName}${number}`;
  keys.set(key, meaning);
  return key === fieldName ? '' : `${key}: `;
}

function drawFragment(draft: Draft, uses: Set<Variable>, type: GraphQLCompositeType, depth: number): string {
  const { tape, fragments } = draft;
  const known = fragments.filter((fragment) => schemaOverlap(draft, fragment.type, type));
  if (known.length > 0 && tape.chance(55)) {
    const fragment = tape.pick(known);
    for (const variable of fragment.uses) uses.add(variable);
    return `...${fragment.name}${drawDirectives(draft, uses)}`;
  }
  const condition = tape.chance(35) || isAbstractType(type) ? tape.pick(related(draft, type)) : type;
  const own = new Set<Variable>();
  const selection = drawSelection(draft, own, condition, depth - 1);
  for (const variable of own) uses.add(variable);
  const directives = drawDirectives(draft, uses);
  if (tape.chance(40)) {
    const isImplied = condition === type && tape.chance(50);
    return `...${isImplied ? '' : ` on ${condition.name}`}${directives} ${selection}`;
  }
  const name = tape.chance(10) ? `${tape.pick(draft.oddNames)}${fragments.length}` : `F${fragments.length}`;
  fragments.push({ name, type: condition, uses: own });
  draft.fragmentTexts.push(`fragment ${name} on ${condition.name} ${selection}`);
  return `...${name}${directives}`;
}

function schemaOverlap({ schema }: Draft, one: GraphQLCompositeType, other: GraphQLCompositeType): boolean {
  const possible = (type: GraphQLCompositeType) =>
    isAbstractType(type) ? schema.getPossibleTypes(type) : [type];
  return possible(one).some((type) => possible(other).includes(type));
}

/** The possible type conditions of a fragment in a selection on this type. */
function related(draft: Draft, type: GraphQLCompositeType): readonly GraphQLCompositeType[] {
  const composite = Object.values(draft.schema.getTypeMap()).filter(isCompositeType);
  return composite.filter((other) => schemaOverlap(draft, other, type));
}

function drawDirectives(draft: Draft, uses: Set<Variable>, percent = 22): string {
  const { tape } = draft;
  if (!tape.chance(percent)) return '';
  const draw = (name: string) => {
    const value = tape.chance(15) ? String(tape.chance(50)) : drawVariable(draft, uses, undefined);
    return ` @${name}(if: ${value})`;
  };
  const [one, other] = tape.chance(50) ? ['include', 'skip'] : ['skip', 'include'];
  return tape.chance(10) ? draw(one) + draw(other) : draw(one);
}

function drawArgument(draft: Draft, uses: Set<Variable>, argument: GraphQLArgument): string {
  const { tape } = draft;
  if (tape.chance(40)) return drawVariable(draft, uses, argument);
  if (!isNonNullType(argument.type) && tape.chance(8)) return 'null';
  // A single item may be given in place of a list, and a list may contain variables.
  if (String(argument.type) === '[ID!]!' && tape.chance(30)) {
    const id = JSON.stringify(drawGlobalId(draft));
    const item = draft.schema.getQueryType()?.getFields().node?.args[0];
    return tape.chance(50) || !item ? id : `[${drawVariable(draft, uses, item)}, ${id}]`;
  }
  const type = getNullableType(argument.type);
  if (isInputObjectType(type) && !type.isOneOf && tape.chance(60)) return drawInput(draft, uses, type, 0);
  if (isInputObjectType(type) && tape.chance(40)) {
    // A variable for the field of a `@oneOf` object must not be null.
    const { name, type: its, ...others } = tape.pick(Object.values(type.getFields()));
    const field = { ...others, name, type: new GraphQLNonNull(getNullableType(its)) };
    return `{ ${name}: ${drawVariable(draft, uses, field)} }`;
  }
  return literalOf(drawValue(draft, argument), argument.type);
}

/** A filter that contains variables at any depth. */
function drawInput(draft: Draft, uses: Set<Variable>, type: GraphQLInputObjectType, depth: number): string {
  const { tape } = draft;
  const parts = new Map<string, string>();
  for (let count = tape.below(3); count >= 0; count--) {
    const field = tape.pick(Object.values(type.getFields()));
    const below = getNullableType(field.type);
    const isDeeper = isInputObjectType(below) && depth < 3 && tape.chance(70);
    if (isDeeper) parts.set(field.name, drawInput(draft, uses, below, depth + 1));
    else if (tape.chance(60)) parts.set(field.name, drawVariable(draft, uses, field, depth + 1));
    else parts.set(field.name, literalOf(drawValue(draft, field, depth + 1), field.type));
  }
  return `{ ${[...parts].map(([name, value]) => `${name}: ${value}`).join(', ')} }`;
}

/** A variable for the argument or the condition: one that is declared already, or a new one. */
function drawVariable(
  draft: Draft,
  uses: Set<Variable>,
  argument: GraphQLArgument | GraphQLInputField | undefined,
  depth = 0,
): string {
  const { tape, variables } = draft;
  const type = argument ? String(argument.type) : 'Boolean!';
  const kind = `${type} ${type.startsWith('Int') && argument?.name !== 'databaseId' ? '' : argument?.name}`;
  const known = variables.get(kind) ?? [];
  let variable = known.length > 0 && tape.chance(60) ? tape.pick(known) : undefined;
  if (!variable) {
    const draw = (from: Tape): unknown =>
      argument ? drawValue({ tape: from, names: draft.names }, argument, depth) : from.chance(50);
    variable = newVariable(draft, argument?.type ?? GraphQLBoolean, type, draw);
    variables.set(kind, [...known, variable]);
  }
  uses.add(variable);
  return `$${variable.name}`;
}

function newVariable(draft: Draft, of: GraphQLInputType, type: string, draw: Variable['draw']): Variable {
  const { tape, variables } = draft;
  const taken = new Set([...variables.values()].flat().map(({ name }) => name));
  const wanted = tape.chance(15) ? tape.pick(draft.oddNames) : `v${taken.size}`;
  const name = taken.has(wanted) ? `v${taken.size}` : wanted;
  // A nullable variable with a default is allowed for a non-null argument.
  const hasDefault = tape.chance(35);
  const bare = type.replace(/!$/, '');
  const isStrict = type.endsWith('!') ? !hasDefault || tape.chance(30) : tape.chance(15);
  const value = hasDefault ? ` = ${literalOf(draw(tape), of)}` : '';
  return { name, declaration: `$${name}: ${bare}${isStrict ? '!' : ''}${value}`, draw };
}
