/** The entry point of the console. */

import { render } from 'preact';
import { App } from './app.tsx';
import { root } from './page.ts';
import './style.css';

// Rendering gets a task of its own: on a slow phone, parsing the scripts already takes a long one.
setTimeout(() => render(<App />, root));
