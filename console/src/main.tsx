/** Where the console begins. */

import { render } from 'preact';
import { App } from './app.tsx';
import { root } from './page.ts';
import './style.css';

// In a task of its own: on a slow telephone, to read the program takes long enough.
setTimeout(() => render(<App />, root));
