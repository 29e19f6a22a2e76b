/** Statistics of lock sessions. */

import { LockTemplate } from './lockTemplate.ts';
import { addStatistics } from './statistics.ts';

addStatistics({
  model: 'LockSession',
  noun: 'lock sessions',
  descriptions: {
    query: "Statistics of the viewer's lock sessions, by when they started.",
    figures:
      'Figures of lock sessions. An average or a sum of none is null. Sums may go beyond what an Int can hold.',
    total: 'All sessions together.',
    period:
      'The day, week or month in which they started. Null as well for sessions whose time is before the year 1, after the ' +
      'year 9999 or infinite.',
  },
  parts: 'segments',
  time: { field: 'startedAt', column: 'startDate' },
  keys: {
    templateId: {
      columns: ['templateId'],
      by: ['TEMPLATE', 'By the template that they were started from, if any.'],
      type: 'Int',
      description: 'Integer id of the template; null as well for sessions without one.',
      link: {
        name: 'template',
        type: LockTemplate,
        description: 'The template; null as well for sessions without one.',
      },
    },
    lockState: {
      columns: ['lockState'],
      by: ['STATE', 'By their state.'],
      type: 'String',
      description: 'The state.',
    },
  },
  figures: {
    sessionCount: { of: 'rows', does: 'count', description: 'How many sessions.' },
    activeSessionCount: {
      ...{ of: 'rows', does: 'count', column: 'isActive', is: true },
      description: 'How many of them are under way: one at most.',
    },
    averageDurationSeconds: {
      ...{ of: 'rows', does: 'mean', column: 'duration' },
      description: 'How long they last on average, in seconds.',
    },
    totalDurationSeconds: {
      ...{ of: 'rows', does: 'sum', column: 'duration' },
      description: 'How long they last together, in seconds.',
    },
    firstSessionAt: {
      ...{ of: 'rows', does: 'first', column: 'startDate' },
      description: 'When the first session started.',
    },
    lastSessionAt: {
      ...{ of: 'rows', does: 'last', column: 'startDate' },
      description: 'When the last session started.',
    },
    segmentCount: { of: 'parts', does: 'count', description: 'How many events there are in their history.' },
  },
});
