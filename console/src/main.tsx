/** Where the console begins. */

import { render } from 'preact';
import { App } from './app.tsx';
import { root } from './page.ts';
import './style.css';

render(<App />, root);
