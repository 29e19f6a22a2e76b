/** The view for the address of a record that does not exist. */

import { View } from './view.tsx';

interface MissingProps {
  /** The kind of the record, such as `session`. */
  what: string;
  /** The address of the list of all such records. */
  href: string;
}

export const Missing = ({ what, href }: MissingProps) => (
  <View title={`No such ${what}`} sources={[]}>
    <p>
      There is none with this number, or none that you can see. It may have been deleted.{' '}
      <a href={href}>All {what}s</a>
    </p>
  </View>
);
