/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We link a whole room to this program: if the room needs more than it may use, it does not link.
 */
int main(void)
{
	return 0;
}
