/** Where an address names what is not there. */

import { View } from './view.tsx';

interface MissingProps {
  /** What it would be, such as `session`. */
  what: string;
  /** Where all of them are. */
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
