/** The joins that a filter makes: one for each link, and another for a link to a template. */

import { expect, it } from 'vitest';
import { currentViewer } from '../../../src/database/models.ts';
import { countJoins, countStatement } from '../../../src/database/reader/statement.ts';
import { readFilter } from '../../../src/schema/filter.ts';
import '../../../src/schema/schema.ts';

const withName = (name: string) => ({ template: { name: { eq: name } } });
const active = { template: { isActive: { eq: true } } };

it.each<[name: string, where: object, joins: number]>([
  ['one for a link, and one for the library that a template is in', withName('a'), 2],
  ['one for what a field needs', active, 3],
  ['no more for several conditions', { template: { ...withName('a').template, and: [{}] } }, 2],
  ['one for each link under and, or and not', { and: [withName('a')], or: [{ not: withName('b') }] }, 4],
])('a filter makes as many joins as its links need: %s', (_, where, joins) => {
  const condition = readFilter('DttSession', { ...where }, currentViewer) ?? {};
  expect(countJoins('DttSession', condition)).toBe(joins);
  expect(countStatement('DttSession', condition).text.split('EXISTS')).toHaveLength(joins + 1);
});
