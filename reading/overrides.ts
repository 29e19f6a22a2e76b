/** What the OpenAPI document says in place of the GraphQL schema, where that does not hold for JSON. */

interface Override {
  readonly description?: string;
  /** The only values of a text, in the gateway's own database: a trigger rejects others. */
  readonly values?: readonly string[];
}

/** By the type, the type and the field, or for all types the field: the names are those of the GraphQL schema. */
export const overrides: Readonly<Record<string, Override>> = {
  databaseId: { description: 'Integer id, unique among the records of its kind.' },
  ActivateTemplatePayload: { description: 'The template that is active now.' },
  User: { description: 'You, with your profile.' },
  DttTemplate: {
    description: 'A training program (DTT template, also called DTT settings), of your own or imported.',
  },
  'DttTemplate.ownerId': {
    description: 'Integer id of its owner. Of an imported template, that is another user.',
  },
  TrainerSegment: {
    description: 'The result of one segment of a training session. What was not measured is left out.',
  },
  'TrainerSegment.rawType': {
    description: 'Kind of segment.',
    values: ['repetition', 'endurance', 'freeform', 'bounce'],
  },
  'TrainerSegment.timeInTargetDepthMilliseconds': {
    description: 'Cumulative time in the target depth window, in milliseconds.',
  },
  'TrainerSegment.createdAt': { description: 'When it was recorded.' },
};
